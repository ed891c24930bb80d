import type { Problem } from '../definition/definition.ts'
import type { Paper } from '../ctl/facts.ts'
import { oneLine, wrap } from '../ctl/text.ts'

/** Problems in the format of a compiler: place, severity, code, message. */
export function renderProblems(problems: readonly Problem[], paper: Paper): string {
  return problems
    .map(({ place, severity, code, message }) => {
      const line = oneLine(`${place}: ${severity} ${code}: ${message}`)
      return Number.isFinite(paper.columns) ? `${wrap(line, paper.columns - 2).join('\n  ')}\n` : `${line}\n`
    })
    .join('')
}

/** Errors first, then by place. */
export const sortProblems = (problems: readonly Problem[]): Problem[] =>
  [...problems].sort((a, b) => rank(a) - rank(b) || compare(a.place, b.place))

const rank = ({ severity }: Problem) => (severity === 'error' ? 0 : 1)
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
