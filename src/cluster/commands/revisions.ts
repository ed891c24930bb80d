import type { Context } from '../../ctl/context.ts'
import type { Paper } from '../../ctl/facts.ts'
import { renderTable, type Column } from '../../ctl/table.ts'
import { moment, oneLine, wrap } from '../../ctl/text.ts'
import { readRevisions, type Revision } from './change-host.ts'

const layout: readonly Column<Revision>[] = [
  { title: 'REVISION', read: ({ revision, isActive }) => `${revision}${isActive ? ' *' : ''}` },
  { title: 'TIME', read: ({ creationTimestamp }) => moment(creationTimestamp), isFlexible: true },
  { title: 'BY', read: ({ by }) => by, isFlexible: true },
  { title: 'ORIGIN', read: ({ origin }) => origin },
  {
    title: 'DEFINITION',
    read: ({ definition: { name, version } }) => `${name} ${version}`,
    isFlexible: true,
  },
  { title: 'KUBERNETES', read: ({ kubernetesVersion }) => kubernetesVersion },
  { title: 'OUTCOME', read: outcomeOf, isFlexible: true },
]

/** `edgehostctl cluster revisions`. */
export async function listRevisions(context: Context): Promise<undefined> {
  const items = await readRevisions(context)
  await context.output.show({ items }, (paper) => renderRevisions(items, paper))
  return undefined
}

// A reason names pods by words that no column has room for, so it is below the table.
function renderRevisions(items: readonly Revision[], { columns }: Paper): string {
  const reasons = items.flatMap(({ revision, outcome, reason }) =>
    reason === undefined ? [] : [`${revision} ${outcome}: ${oneLine(reason)}`],
  )
  const below = reasons.flatMap((reason) => ['', ...wrap(reason, columns)])
  return [renderTable(items, layout, columns), ...below.map((line) => `${line}\n`)].join('')
}

function outcomeOf({ outcome, scheduleAt }: Revision): string {
  const isOpen = outcome === 'waiting' || outcome === 'held'
  return isOpen && scheduleAt !== undefined ? `${outcome} for ${moment(scheduleAt)}` : outcome
}
