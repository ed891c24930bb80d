import type { Context } from '../../ctl/context.ts'
import { parseLimit } from '../../ctl/limit.ts'
import { filterOf, noteRest } from '../../ctl/list.ts'
import { renderTable, type Column } from '../../ctl/table.ts'
import { moment } from '../../ctl/text.ts'
import type { Event, EventSource } from '../events/schemas.ts'
import { clusterPath } from '../../ctl/cluster-details.ts'

const layout: readonly Column<Event>[] = [
  { title: 'TIME', read: ({ metadata }) => moment(metadata.creationTimestamp) },
  { title: 'SEVERITY', read: ({ severity }) => severity },
  { title: 'REASON', read: ({ reason }) => reason },
  { title: 'OBJECT', read: objectOf, isFlexible: true },
  { title: 'FROM', read: ({ source }) => source.component, isFlexible: true },
  {
    title: 'MESSAGE',
    read: ({ message, count: times }) => (times === undefined ? message : `${message} (${times} times)`),
    isFlexible: true,
  },
]

/** `edgehostctl cluster events`. */
export async function listEvents({
  client,
  line,
  output,
}: Context<'limit' | 'filter' | 'namespace'>): Promise<undefined> {
  const { namespace } = line.options
  const query = {
    ...filterOf(line),
    ...(namespace === undefined ? {} : { namespace }),
  }
  const found = await client.list<Event, { kubernetes: EventSource }>(
    `${clusterPath}/events`,
    query,
    parseLimit(line, 50),
    ['kubernetes'],
  )
  await output.show(found, ({ columns }) => renderTable(found.items, layout, columns))
  const { kubernetes, listmeta, items } = found
  if (kubernetes.state === 'failed')
    output.note(`The events of Kubernetes could not be read: ${kubernetes.message ?? 'it does not say why'}`)
  if (listmeta.continue !== '') noteRest(output, items.length, listmeta.count)
  return undefined
}

function objectOf({ involvedObject, relatedObject }: Event): string {
  if (relatedObject?.kind === 'pack') return `pack ${relatedObject.name ?? ''}`
  const { kind, namespace, name } = involvedObject
  if (name === undefined) return ''
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`
}
