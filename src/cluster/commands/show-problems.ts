import type { Paper } from '../../ctl/facts.ts'
import { errorOf, type Reply } from '../../ctl/reply.ts'
import { renderTable, type Column } from '../../ctl/table.ts'
import type { ClusterDryRun } from '../schemas.ts'

/** A finding of the pre-flight checks. */
export type Problem = ClusterDryRun['problems'][number]

// The host renders every chart and looks for every image before it answers.
export const checkMs = 600_000

const layout: readonly Column<Problem>[] = [
  { title: 'SEVERITY', read: ({ severity }) => severity },
  { title: 'CODE', read: ({ code }) => code },
  { title: 'WHERE', read: ({ pack, path }) => [pack, path].filter(Boolean).join(' '), isFlexible: true },
  { title: 'PROBLEM', read: ({ message }) => message, isFlexible: true },
]

export const renderProblems = (problems: readonly Problem[], { columns }: Paper): string =>
  renderTable(problems, layout, columns)

/** The list of a failed pre-flight; undefined for another refusal. */
export function problemsOf(reply: Reply): readonly Problem[] | undefined {
  const problems: unknown = errorOf(reply)?.details?.problems
  return Array.isArray(problems) ? (problems as Problem[]) : undefined
}
