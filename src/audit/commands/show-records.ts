import type { Context, HostProgram } from '../../ctl/client.ts'
import { parseLimit, filterOf, noteRest } from '../../ctl/list.ts'
import { parsePointInTime } from '../../ctl/given-values.ts'
import { renderTable, type Column, moment } from '../../ctl/layout.ts'
import type { RecordOption } from './trail-commands.ts'
import type { AuditView } from '../schemas.ts'

export interface RecordList<Item> {
  /** Path of the list of the trail in the API. */
  readonly path: string
  readonly layout: readonly Column<Item>[]
  /** Query parameters beside `recordOptions`. */
  readonly query?: Readonly<Record<string, string>>
}

/** Shows records of the trail as a table, the newest first: 50, or as many as `--limit` says. */
export async function showRecords<Item>(
  { client, line, output }: Context<RecordOption>,
  { path, layout, query }: RecordList<Item>,
): Promise<undefined> {
  const { since, until } = line.options
  const now = Date.now()
  const asked = {
    ...filterOf(line),
    ...(since === undefined ? {} : { startTime: parsePointInTime('--since', since, now) }),
    ...(until === undefined ? {} : { endTime: parsePointInTime('--until', until, now) }),
    ...query,
  }
  const found = await client.list<Item>(path, asked, parseLimit(line, 50))
  await output.show(found, ({ columns }) => renderTable(found.items, layout, columns))
  const { listmeta, items } = found
  if (listmeta.continue !== '') noteRest(output, items.length, listmeta.count)
  return undefined
}

const layout: readonly Column<AuditView>[] = [
  { title: 'TIME', read: ({ metadata }) => moment(metadata.createTimestamp) },
  { title: 'WHO', read: ({ spec: { actor } }) => actor.uid || actor.actorType, isFlexible: true },
  { title: 'FROM', read: ({ spec: { actor } }) => actor.address, isFlexible: true },
  { title: 'OUTCOME', read: ({ spec }) => spec.outcome },
  { title: 'WHAT', read: ({ spec }) => spec.message, isFlexible: true },
]

/** `edgehostctl audit list`. */
export const listAudits =
  (path: string): HostProgram<RecordOption> =>
  (context) =>
    showRecords(context, { path, layout })
