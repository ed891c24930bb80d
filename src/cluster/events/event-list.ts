import { type ClusterEvent, type StoredEventLog, eventColumns, eventOf, type EventRow } from './event-log.ts'
import { conditionTypes } from './condition-types.ts'
import { isReason, reasonOf } from './reasons.ts'
import { Event, type EventSource } from './schemas.ts'
import { parseTime } from '../../base/time.ts'
import { KubernetesError, type KubernetesClient, type KubernetesObject } from '../../kubernetes/client.ts'
import { numberAt, textAt, trimEvent } from '../../kubernetes/fields.ts'
import type { ContinueTokens } from '../../lists/continue-token.ts'
import { comparison, listInMemory, type MemoryField } from '../../lists/memory.ts'
import { makePage, type Page } from '../../lists/page.ts'
import { parseListQuery, type ListParameters, type ListQuery } from '../../lists/query.ts'
import { eventResource } from '../../kubernetes/paths.ts'
import { fieldAt, type FieldValue, type ListResource } from '../../lists/resource.ts'
import { createSqlList } from '../../lists/sql-list.ts'
import type { SqlField } from '../../lists/sql.ts'
import type { Database } from '../../store/database.ts'

/** An event of edgehostd in its shape on the wire. */
export function viewOf(event: ClusterEvent, hostName: string): Event {
  const { id, at, reason, message, severity, clusterUid, step, object } = event
  const type = isReason(reason) ? reasonOf(reason).type : undefined
  const pack = object?.kind === 'pack' ? object.name : undefined
  return {
    metadata: {
      uid: `edgehostd-${id}`,
      name: `edgehostd-${id}`,
      creationTimestamp: new Date(at).toISOString(),
      number: id,
    },
    involvedObject: object && pack === undefined ? object : { kind: 'Cluster', uid: clusterUid },
    relatedObject:
      pack !== undefined
        ? { kind: 'pack', name: pack }
        : type && conditionTypes[type].of === 'host'
          ? { kind: 'machine', name: hostName }
          : { kind: 'spectrocluster', uid: clusterUid },
    reason,
    message,
    severity,
    source: { component: 'edgehostd', host: hostName },
    clusterUid,
    ...(type && { type }),
    ...(step !== undefined && { step }),
  }
}

/** Result of reading Kubernetes' own events. */
interface KubernetesEvents {
  readonly items: readonly Event[]
  readonly source: EventSource
}

const readMs = 5_000
/** Kubernetes keeps events for an hour; a cluster with more is in a storm. */
export const mostEvents = 5_000

/**
 * Reads Kubernetes' own events. A cluster that cannot answer, or has too many, is no error: `source` says so.
 * @param client undefined where there is no Kubernetes
 * @param namespace undefined for all
 */
export async function readKubernetesEvents(
  client: KubernetesClient | undefined,
  namespace: string | undefined,
): Promise<KubernetesEvents> {
  if (client === undefined) return { items: [], source: { state: 'absent' } }
  const tooMany = new AbortController()
  const late = AbortSignal.timeout(readMs)
  let count = 0
  const pick = (object: KubernetesObject) => {
    count += 1
    if (count > mostEvents) tooMany.abort()
    return trimEvent(object)
  }
  try {
    const signal = AbortSignal.any([tooMany.signal, late])
    const found = await client.list(eventResource, { ...(namespace && { namespace }), pick, signal })
    tooMany.signal.throwIfAborted()
    return { items: found.map(kubernetesEventOf), source: { state: 'read' } }
  } catch (error) {
    if (tooMany.signal.aborted)
      return failed(`Kubernetes has more than ${mostEvents} events; ask for one namespace`)
    if (late.aborted)
      return failed(`the API server of the cluster did not answer within ${readMs / 1_000} seconds`)
    if (error instanceof KubernetesError) return failed(error.message)
    throw error
  }
}

const failed = (message: string): KubernetesEvents => ({ items: [], source: { state: 'failed', message } })

/**
 * An event of Kubernetes in the shape of the wire. Which of its times and counts are set depends on the API that its component used, core/v1
 * or events.k8s.io/v1 (kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1).
 */
export function kubernetesEventOf(object: KubernetesObject): Event {
  const { metadata } = object
  const text = (...path: readonly string[]) => textAt(object, path)
  const times = [
    ...[text('series', 'lastObservedTime'), text('lastTimestamp'), text('eventTime'), text('firstTimestamp')],
    text('metadata', 'creationTimestamp'),
  ]
  const at = times.map(parseTime).find((time) => time !== undefined) ?? 0
  const count = numberAt(object, ['series', 'count']) ?? numberAt(object, ['count'])
  const component = text('source', 'component') || text('reportingComponent')
  const host = text('source', 'host') || text('reportingInstance')
  return {
    metadata: {
      uid: metadata.uid ?? metadata.name,
      name: metadata.name,
      ...(metadata.namespace !== undefined && { namespace: metadata.namespace }),
      creationTimestamp: new Date(at).toISOString(),
      number: 0,
    },
    involvedObject: {
      kind: text('involvedObject', 'kind'),
      ...present('name', object),
      ...present('namespace', object),
      ...present('uid', object),
      ...present('apiVersion', object),
      ...present('fieldPath', object),
    },
    reason: text('reason'),
    message: text('message'),
    severity: object.type === 'Warning' ? 'Warning' : 'Normal',
    source: { component, ...(host && { host }) },
    ...(count !== undefined && count > 1 && { count }),
  }
}

/** A field of the event's object; nothing where that has none. */
const present = <Name extends string>(name: Name, object: KubernetesObject) => {
  const text = textAt(object, ['involvedObject', name])
  return (text === '' ? {} : { [name]: text }) as Partial<Record<Name, string>>
}

type EventField = SqlField & {
  readonly read: (event: Event) => FieldValue
}

/** The fields by which clients may filter and order events: `column` for ours, `read` for Kubernetes' own. */
export const eventList: ListResource<EventField> = {
  name: 'cluster events',
  fields: {
    'metadata.uid': { type: 'text', column: 'uid', read: ({ metadata }) => metadata.uid },
    'metadata.number': { type: 'integer', column: 'id', read: ({ metadata }) => metadata.number },
    'metadata.creationTimestamp': {
      type: 'time',
      column: 'at',
      read: ({ metadata }) => Date.parse(metadata.creationTimestamp),
    },
    reason: { type: 'text', column: 'reason', read: ({ reason }) => reason },
    severity: { type: 'text', column: 'severity', read: ({ severity }) => severity },
    clusterUid: { type: 'text', column: 'cluster_uid', read: ({ clusterUid = '' }) => clusterUid },
    step: { type: 'text', isOrdered: false, column: 'step', read: ({ step = '' }) => step },
    'source.component': {
      type: 'text',
      isOrdered: false,
      column: 'component',
      read: ({ source }) => source.component,
    },
    'involvedObject.kind': {
      type: 'text',
      isOrdered: false,
      column: 'involved_kind',
      read: ({ involvedObject }) => involvedObject.kind,
    },
    'involvedObject.name': {
      type: 'text',
      isOrdered: false,
      column: 'involved_name',
      read: ({ involvedObject: { name = '' } }) => name,
    },
    'relatedObject.name': {
      type: 'text',
      isOrdered: false,
      column: 'pack',
      read: () => '',
    },
  },
  key: 'metadata.uid',
  // Newest first. Events of one millisecond are told apart by their number.
  defaultOrder: [
    { path: 'metadata.creationTimestamp', direction: -1 },
    { path: 'metadata.number', direction: -1 },
  ],
  item: Event,
}

// The view of a row as `viewOf` makes it, for filters.
const table = `(SELECT *, 'edgehostd-' || id AS uid, 'edgehostd' AS component,
  iif(object_kind IN ('', 'pack'), 'Cluster', object_kind) AS involved_kind,
  iif(object_kind = 'pack', '', object_name) AS involved_name,
  iif(object_kind = 'pack', object_name, '') AS pack
  FROM cluster_event)`

interface EventListOptions {
  readonly database: Database
  readonly events: StoredEventLog
  /** Undefined while there is no Kubernetes. */
  readonly client: () => KubernetesClient | undefined
  readonly hostName: () => string
  /** Masks the sensitive values of the cluster, which Kubernetes may quote. */
  readonly hide: () => (text: string) => string
  readonly listTokens: ContinueTokens
}

/** The events of edgehostd and of Kubernetes as one list. */
export interface EventList {
  /** @param namespace only events of objects in it; empty for all */
  page(
    parameters: ListParameters,
    namespace: string,
  ): Promise<Page<Event> & { readonly kubernetes: EventSource }>
}

export function createEventList({
  database: { sql },
  events,
  client,
  hostName,
  hide,
  listTokens,
}: EventListOptions): EventList {
  const own = createSqlList<Event>({
    resource: eventList,
    table,
    columns: `${eventColumns}, uid`,
    count: events.count,
    sql,
    toItem: (row) => viewOf(eventOf(row as unknown as EventRow), hostName()),
    // The retention bounds the table: no query of it takes longer than some milliseconds.
    read: (statements) =>
      Promise.resolve(statements.map((each) => sql.prepare(each.sql).all(...each.values))),
  })

  return {
    async page(parameters, namespace) {
      const query = parseListQuery(parameters, eventList, { tokens: listTokens, bound: [namespace] })
      const { items, source } = await readKubernetesEvents(client(), namespace || undefined)
      const mask = hide()
      const masked = items.map((event) => maskEvent(event, mask))
      // The first so many of each source contain the first so many of both.
      const wide = widened(query)
      const condition = namespace === '' ? undefined : { sql: 'object_namespace = ?', values: [namespace] }
      const pages = [
        await own.page(wide, condition),
        listInMemory(masked, wide, eventList as ListResource<MemoryField<Event>>, (event) => event),
      ]
      const merged = pages.flatMap(({ items }) => items as Event[])
      return { ...pageOf(query, merged, pages), kubernetes: source }
    },
  }
}

/** An event of Kubernetes without sensitive values: objects may be named after them, and its own name begins with its object's. */
function maskEvent(event: Event, mask: (text: string) => string): Event {
  const { metadata, involvedObject, message } = event
  const { name } = involvedObject
  return {
    ...event,
    metadata: { ...metadata, name: mask(metadata.name) },
    involvedObject: { ...involvedObject, ...(name === undefined ? {} : { name: mask(name) }) },
    message: mask(message),
  }
}

/** A query for the items of this page and one more, and for skipped ones, with all fields. */
const widened = (query: ListQuery): ListQuery => ({
  ...query,
  limit: skippedOf(query) + query.limit + 1,
  offset: 0,
  fields: undefined,
})

const skippedOf = ({ after, offset }: ListQuery) => (after === undefined ? offset : 0)

function pageOf(query: ListQuery, found: readonly Event[], pages: readonly Page<Event>[]): Page<Event> {
  const valuesOf = (event: Event) => query.order.map(({ path }) => fieldAt(eventList, path).read(event))
  const compare = comparison(query.order)
  const rows = found
    .map((event) => ({ event, values: valuesOf(event) }))
    .sort((one, two) => compare(one.values, two.values))
    .slice(skippedOf(query))
  return makePage(query, {
    rows,
    count: pages.reduce((sum, { listmeta }) => sum + listmeta.count, 0),
    valuesOf: ({ values }) => values,
    toItem: ({ event }) => event,
  })
}
