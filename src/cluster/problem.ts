import type { PreflightCodeName } from './preflight/codes.ts'

/** A finding of a pre-flight check. */
export interface PreflightProblem {
  readonly code: PreflightCodeName
  /** `error`: the cluster cannot be created. */
  readonly severity: 'error' | 'warning'
  /** What is wrong and what to do. */
  readonly message: string
  /** `id` of the pack that it concerns. */
  readonly pack?: string
  /** JSON path in what was posted, for example `spec.cloudConfig.spec.machinePoolConfig[0].hosts`. */
  readonly path?: string
}
