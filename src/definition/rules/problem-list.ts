import type { Problem } from '../definition.ts'
import { definitionCodes, type DefinitionCode } from './codes.ts'

/** Receives problems, one by one. */
export type Report = (
  code: DefinitionCode,
  place: string,
  message: string,
  severity?: Problem['severity'],
) => void

// More than a person corrects before the next check, and little enough for one reply.
const problemLimit = 1_000

/**
 * Problems in the order in which they were found; beyond 1,000 errors and 1,000 warnings only that there are more. Warnings
 * never take the place of an error, and never refuse a definition by their number.
 */
export function createProblemList() {
  const problems: Problem[] = []
  const found = { error: 0, warning: 0 }
  const add = (problem: Problem): void => {
    found[problem.severity] += 1
    if (found[problem.severity] <= problemLimit) problems.push(problem)
  }
  const report: Report = (code, place, message, severity = definitionCodes[code].severity) =>
    add({ code, severity, place, message })
  /** What another list found. */
  const adopt = (others: readonly Problem[]): void => {
    for (const problem of others) add(problem)
  }
  /** All of them. */
  const list = (): Problem[] => {
    const untold = found.error + found.warning - problems.length
    if (untold === 0) return problems
    const isError = found.error > problemLimit
    return [
      ...problems,
      {
        code: 'TooManyProblems',
        severity: isError ? definitionCodes.TooManyProblems.severity : 'warning',
        place: 'definition.yaml',
        message: `${untold} more ${isError ? 'problems' : 'warnings'} are not told; correct these and check again`,
      },
    ]
  }
  return { report, adopt, list }
}
