import { parseTime } from '../../base/time.ts'
import { KubernetesError } from '../../kubernetes/client.ts'
import type { KubernetesClient, KubernetesObject, Resource } from '../../kubernetes/client.ts'
import { numberAt, textAt } from '../../kubernetes/fields.ts'
import type { Event, EventSource } from './schemas.ts'

/** What was read of Kubernetes' own events. */
export interface KubernetesEvents {
  readonly items: readonly Event[]
  readonly source: EventSource
}

const events: Resource = { group: '', version: 'v1', plural: 'events', kind: 'Event', isNamespaced: true }
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
    return withoutUnused(object)
  }
  try {
    const signal = AbortSignal.any([tooMany.signal, late])
    const found = await client.list(events, { ...(namespace && { namespace }), pick, signal })
    tooMany.signal.throwIfAborted()
    return { items: found.map(eventOf), source: { state: 'read' } }
  } catch (error) {
    if (tooMany.signal.aborted)
      return failed(`Kubernetes has more than ${mostEvents} events; ask for those of one namespace`)
    if (late.aborted)
      return failed(`the API server of the cluster did not answer within ${readMs / 1_000} seconds`)
    if (error instanceof KubernetesError) return failed(error.message)
    throw error
  }
}

const failed = (message: string): KubernetesEvents => ({ items: [], source: { state: 'failed', message } })

/** What `eventOf` reads. */
function withoutUnused(object: KubernetesObject): KubernetesObject {
  const { apiVersion, kind, metadata, involvedObject, reason, message, type, count, source } = object
  const { name, namespace, uid, creationTimestamp } = metadata
  const { firstTimestamp, lastTimestamp, eventTime, series, reportingComponent, reportingInstance } = object
  return {
    ...{ apiVersion, kind, involvedObject, reason, message, type, count, source },
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
    },
    ...{ firstTimestamp, lastTimestamp, eventTime, series, reportingComponent, reportingInstance },
  }
}

/**
 * An event of Kubernetes in the shape of the wire. Which of its times and counts are set depends on the API that its component used, core/v1
 * or events.k8s.io/v1 (kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1).
 */
export function eventOf(object: KubernetesObject): Event {
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

/** A field of what the event is about; nothing where that has none. */
const present = <Name extends string>(name: Name, object: KubernetesObject) => {
  const text = textAt(object, ['involvedObject', name])
  return (text === '' ? {} : { [name]: text }) as Partial<Record<Name, string>>
}
