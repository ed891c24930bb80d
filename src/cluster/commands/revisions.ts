import type { Context } from '../../ctl/context.ts'
import { renderTable, type Column } from '../../ctl/table.ts'
import { moment } from '../../ctl/text.ts'
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
  { title: 'REASON', read: ({ reason }) => reason, isFlexible: true },
]

/** `edgehostctl cluster revisions`. */
export async function listRevisions(context: Context): Promise<undefined> {
  const items = await readRevisions(context)
  await context.output.show({ items }, ({ columns }) => renderTable(items, layout, columns))
  return undefined
}

function outcomeOf({ outcome, scheduleAt }: Revision): string {
  const isOpen = outcome === 'waiting' || outcome === 'held'
  return isOpen && scheduleAt !== undefined ? `${outcome} for ${moment(scheduleAt)}` : outcome
}
