import type { Context } from '../../ctl/client.ts'
import { parseLimit, filterOf, noteRest } from '../../ctl/list.ts'
import { renderTable, type Column, moment } from '../../ctl/layout.ts'
import type { Event } from './schemas.ts'
import { findScopes, listScopes } from '../commands/find.ts'

const path = '/v1/events/components'

const layout: readonly Column<Event>[] = [
  { title: 'TIME', read: ({ metadata }) => moment(metadata.creationTimestamp) },
  { title: 'HOST', read: ({ source }) => source.host, isFlexible: true },
  { title: 'SEVERITY', read: ({ severity }) => severity },
  { title: 'REASON', read: ({ reason }) => reason, isFlexible: true },
  { title: 'MESSAGE', read: ({ message }) => message, isFlexible: true },
]

export async function listEvents({
  client,
  line,
  output,
}: Context<'project' | 'limit' | 'filter'>): Promise<undefined> {
  const { project } = line.options
  const limit = parseLimit(line, 50)
  const scopes = await findScopes(client, project)
  const found = await listScopes<Event>(client, scopes, { path, query: { ...filterOf(line) }, limit })
  // Each list has the newest first; the number is the order in which the platform received them.
  const all = found.items
    .map(({ item }) => item)
    .sort((one, other) => other.metadata.number - one.metadata.number)
  const items = limit === 0 ? all : all.slice(0, limit)
  await output.show({ items, listmeta: { count: found.count, limit: items.length } }, ({ columns }) =>
    renderTable(items, layout, columns),
  )
  if (items.length < found.count) noteRest(output, items.length, found.count)
  return undefined
}
