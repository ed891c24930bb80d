import type { ResetPart } from '../../root/room.ts'
import type { Database } from '../../store/database.ts'
import type { Clock } from '../../system/clock.ts'
import { noCluster } from '../api/reading.ts'
import { isDeleting, type ClusterRecord, type ClusterStore } from '../cluster-store.ts'
import type { EventLog } from '../events/event-log.ts'

interface DeletionOptions {
  readonly database: Pick<Database, 'transaction'>
  readonly store: Pick<ClusterStore, 'current' | 'requestDeletion'>
  readonly events: Pick<EventLog, 'add'>
  /** @throws AppError Busy while the host does something that a change of the cluster has to wait for */
  readonly refuseBusy: () => void
  /** Called when the deletion was asked for, the first time or again. */
  readonly onAsked: () => void
  readonly clock: Clock
}

interface Deletion {
  /** Asks for the deletion of the cluster; again while it is under way: nothing. @throws AppError NoCluster, Busy */
  remove(): Pick<ClusterRecord, 'uid' | 'name'>
  readonly resetPart: ResetPart
}

/** Stores that the cluster is to be deleted; the loop deletes it. */
export function createDeletion(options: DeletionOptions): Deletion {
  const { database, store, events, refuseBusy, onAsked, clock } = options

  function ask() {
    const record = store.current()
    if (!record) throw noCluster()
    const { uid, name } = record
    if (!isDeleting(record))
      database.transaction(() => {
        store.requestDeletion(clock.now())
        events.add({ clusterUid: uid, reason: 'Deleting', message: `the cluster ${name} is being deleted` })
      })
    onAsked()
    return { uid, name }
  }

  return {
    remove() {
      const record = store.current()
      if (record && !isDeleting(record)) refuseBusy()
      return ask()
    },
    resetPart: {
      async describe() {
        const record = store.current()
        if (!record) return []
        const { uid, name } = record
        return [`the cluster ${name} (${uid}), with everything that runs in it and the data of its volumes`]
      },
      async clear() {
        const record = store.current()
        if (!record) return true
        if (!isDeleting(record)) ask()
        return false
      },
    },
  }
}
