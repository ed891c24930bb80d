import type { Problem } from '../definition.ts'
import { definitionCodes, type DefinitionCode } from './codes.ts'

/** Receives problems, one by one. */
export type Report = (
  code: DefinitionCode,
  place: string,
  message: string,
  severity?: Problem['severity'],
) => void

// More than an author corrects before the next check, and few enough for one reply.
const problemLimit = 1_000

/**
 * Problems in the order in which they were found. Beyond 1,000 errors and 1,000 warnings, only the number of the others is
 * listed. Warnings never displace an error, and their number never makes a definition invalid.
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
  /** Adds the problems of another list. */
  const adopt = (others: readonly Problem[]): void => {
    for (const problem of others) add(problem)
  }
  /** All problems, followed by `TooManyProblems` if some were omitted. */
  const list = (): Problem[] => {
    const omitted = found.error + found.warning - problems.length
    if (omitted === 0) return problems
    const isError = found.error > problemLimit
    return [
      ...problems,
      {
        code: 'TooManyProblems',
        severity: isError ? definitionCodes.TooManyProblems.severity : 'warning',
        place: 'definition.yaml',
        message: `${omitted} more ${isError ? 'problems' : 'warnings'} are not listed; correct these and check again`,
      },
    ]
  }
  return { report, adopt, list }
}
