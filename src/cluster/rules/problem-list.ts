import type { Problem } from '../definition.ts'
import { definitionCodes, type DefinitionCode } from './codes.ts'

/** Somebody who is told of problems, one by one. */
export type Report = (
  code: DefinitionCode,
  place: string,
  message: string,
  severity?: Problem['severity'],
) => void

// More than anybody corrects before they check again, and little enough for one reply.
const problemLimit = 1_000

/** Problems in the order in which they were found; beyond 1,000 only that there are more. */
export function createProblemList() {
  const problems: Problem[] = []
  let untold = 0
  const report: Report = (code, place, message, severity = definitionCodes[code].severity) => {
    if (problems.length < problemLimit) problems.push({ code, severity, place, message })
    else untold += 1
  }
  /** What another list found. */
  const adopt = (found: readonly Problem[]): void => {
    for (const problem of found) {
      if (problems.length < problemLimit) problems.push(problem)
      else untold += 1
    }
  }
  /** All of them. */
  const list = (): Problem[] =>
    untold === 0
      ? problems
      : [
          ...problems,
          {
            code: 'TooManyProblems',
            severity: definitionCodes.TooManyProblems.severity,
            place: 'definition.yaml',
            message: `${untold} more problems are not told; correct these and check again`,
          },
        ]
  return { report, adopt, list }
}
