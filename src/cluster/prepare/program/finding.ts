import type { PreflightCodeName } from '../../preflight/codes.ts'
import type { PreflightProblem } from '../../problem.ts'

/** What is wrong with an object of a pack. */
export interface Finding {
  readonly code: PreflightCodeName
  readonly severity: PreflightProblem['severity']
  /** Findings of a pack with the same cause become one. */
  readonly cause: string
  readonly message: string
}
