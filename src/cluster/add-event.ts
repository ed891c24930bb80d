import { createHideOf } from '../definition/slots/secrets.ts'
import type { ClusterRecord } from './cluster-store.ts'
import type { EventLog, NewClusterEvent } from './events/event-log.ts'

/** Adds an event of a cluster, with its sensitive values masked, also in the key of a step, which names releases. */
export type AddEvent = (record: ClusterRecord, event: Omit<NewClusterEvent, 'clusterUid'>) => void

export const createAddEvent =
  (events: Pick<EventLog, 'add'>): AddEvent =>
  ({ uid, sensitive }, { step, message, ...event }) => {
    const hide = createHideOf(sensitive)
    events.add({
      ...{ ...event, clusterUid: uid, message: hide(message) },
      ...(step === undefined ? {} : { step: hide(step) }),
    })
  }
