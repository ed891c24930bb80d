import type { ClusterEvent } from './event-log.ts'
import { isReason, reasonOf } from './reasons.ts'
import { conditionTypes } from './condition-types.ts'
import type { Event } from './schemas.ts'

/** An event of edgehostd in its shape on the wire. */
export function viewOf(event: ClusterEvent, hostName: string): Event {
  const { id, at, reason, message, severity, clusterUid, step, object } = event
  const type = isReason(reason) ? reasonOf(reason).type : undefined
  const pack = object?.kind === 'pack' ? object.name : undefined
  return {
    metadata: {
      ...{ uid: `edgehostd-${id}`, name: `edgehostd-${id}` },
      ...{ creationTimestamp: new Date(at).toISOString(), number: id },
    },
    involvedObject: object && pack === undefined ? object : { kind: 'Cluster', uid: clusterUid },
    relatedObject:
      pack !== undefined
        ? { kind: 'pack', name: pack }
        : type && conditionTypes[type].of === 'host'
          ? { kind: 'machine', name: hostName }
          : { kind: 'spectrocluster', uid: clusterUid },
    ...{ reason, message, severity, source: { component: 'edgehostd', host: hostName }, clusterUid },
    ...(type && { type }),
    ...(step !== undefined && { step }),
  }
}
