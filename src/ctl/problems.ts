import type { Paper } from './facts.ts'
import { errorOf, type Reply } from './reply.ts'
import { renderTable, type Column } from './table.ts'

/** A finding of the checks before a cluster is made or changed. */
export interface Problem {
  readonly severity: string
  readonly code: string
  readonly message: string
  readonly path?: string
  readonly pack?: string
}

// The server renders every chart and looks for every image before it answers.
export const checkMs = 600_000

const layout: readonly Column<Problem>[] = [
  { title: 'SEVERITY', read: ({ severity }) => severity },
  { title: 'CODE', read: ({ code }) => code },
  {
    title: 'WHERE',
    read: ({ pack = '', path }) => [pack.slice(pack.indexOf('/') + 1), path].filter(Boolean).join(' '),
    isFlexible: true,
  },
  { title: 'PROBLEM', read: ({ message }) => message, isFlexible: true },
]

export const renderProblems = (problems: readonly Problem[], { columns }: Paper): string =>
  renderTable(problems, layout, columns)

/** The list of a refusal for what was found; undefined for another refusal. */
export function problemsOf(reply: Reply): readonly Problem[] | undefined {
  const problems: unknown = errorOf(reply)?.details?.problems
  return Array.isArray(problems) ? (problems as Problem[]) : undefined
}
