import type { PreflightCodeName } from '../../preflight/codes.ts'
import { preflightCodes } from '../../preflight/codes.ts'
import type { PreflightProblem } from '../../problem.ts'

/** Reports a problem of a pack. @param message a sentence that begins with what it is about */
export type PackReport = (
  code: PreflightCodeName,
  message: string,
  severity?: PreflightProblem['severity'],
) => void

/** @param add receives the problems; @param pack `id` of the pack, which the messages begin with */
export const createPackReport =
  (add: (problem: PreflightProblem) => void, pack: string): PackReport =>
  (code, message, severity = preflightCodes[code].severity) =>
    add({ code, severity, message: `pack ${pack}: ${message}`, pack })
