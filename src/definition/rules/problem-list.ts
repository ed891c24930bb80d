import { nearestName } from '../../base/nearest-name.ts'
import { printable } from '../../base/printable.ts'
import type { Problem } from '../definition.ts'
import { definitionCodes, type DefinitionCode } from './codes.ts'

/** The end of a message about an unknown name: `; did you mean NAME?`, or an empty text. */
type Suggest = (name: string, known: Iterable<string>) => string

// Comparisons of characters: about 20 ms.
const workLimit = 2_000_000

/** Each unknown name is compared with all known ones, so at most the first `limit` unknown names get a suggestion. */
export function createSuggest(limit: number): Suggest {
  let left = limit
  let work = workLimit
  return (name, known) => {
    left -= 1
    const names = left >= 0 && work > 0 ? [...known] : []
    work -= names.reduce((sum, each) => sum + each.length * name.length, 0)
    const near = work > 0 ? nearestName(name, names) : undefined
    return near === undefined ? '' : `; did you mean ${printable(near)}?`
  }
}

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
