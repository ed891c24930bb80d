import type { Database } from '../../store/database.ts'
import { isDatabaseError } from '../../store/unwritable.ts'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import { conditionTypes } from './condition-types.ts'
import type { ClusterEvent, EventLog, NewClusterEvent } from './event-log.ts'
import { createEventStore, type StoredCondition } from './event-store.ts'
import { reasonOf } from './reasons.ts'

export interface EventLogOptions {
  readonly database: Database
  readonly limits: EventLimits
  /** Called for each event, in the transaction that stores it. */
  readonly onStored?: (event: Omit<ClusterEvent, 'id'>) => void
  readonly clock: Clock
  readonly log: Logger
}

/** How long events are kept. */
export interface EventLimits {
  readonly retentionDays: number
  /** Most events; beyond it the oldest are removed. */
  readonly maximum: number
}

/** The event log with what only its room uses. */
export interface StoredEventLog extends EventLog {
  /** Number of stored events. */
  count(): number
  /** Number of the event before the first of the newest cluster: what `follow` needs for all of its events. */
  beforeNewestCluster(): number
  /** The conditions of the newest cluster, in the order in which they come up. */
  conditions(): readonly StoredCondition[]
  /** Removes what is older or more than the limits; a job calls it. */
  retain(): void
}

const dayMs = 86_400_000
const longestMessage = 4_096
const batchLength = 100
// More than `maximum` by so many are removed at once.
const surplus = 100

/** Opens the events of the cluster. */
export function createEventLog(options: EventLogOptions): StoredEventLog {
  const { database, limits, onStored = () => undefined, clock, log } = options
  const store = createEventStore(database)
  const waiting = new Set<() => void>()
  let count = store.count()

  function retain(): void {
    store.retain(clock.now() - limits.retentionDays * dayMs, limits.maximum)
    count = store.count()
  }

  /** @returns false for an event equal to the last */
  function put(named: NewClusterEvent): boolean {
    const { type, status, severity = 'Normal' } = reasonOf(named.reason)
    const [at, message] = [clock.now(), named.message.slice(0, longestMessage)]
    const { clusterUid, reason } = named
    const event: Omit<ClusterEvent, 'id'> = { ...named, severity, at, message }
    return database.transaction(() => {
      // Read, not remembered: the transaction of the last event may have been rolled back.
      const last = store.newest()
      if (last && isEqual(last, event)) return false
      if (clusterUid !== last?.clusterUid) store.keepConditionsOf(clusterUid)
      store.put(event)
      onStored(event)
      if (status) store.putCondition(clusterUid, { type, status, reason, message, probeAt: at })
      return true
    })
  }

  const follow: EventLog['follow'] = async (since, onEvent, signal) => {
    // A function, because the compiler assumes that a property does not change after a check.
    const isOver = () => signal.aborted
    // A higher number is of a database that was damaged and is gone.
    let cursor = since > store.lastId() ? 0 : since
    while (!isOver()) {
      const found = store.after(cursor, batchLength)
      for (const event of found) {
        await onEvent(event)
        if (isOver()) return
        cursor = event.id
      }
      if (found.length === 0) await nextEvent(signal)
    }
  }

  function nextEvent(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        waiting.delete(wake)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      waiting.add(wake)
      signal.addEventListener('abort', wake)
    })
  }

  return {
    add(event) {
      try {
        if (!put(event)) return
      } catch (error) {
        if (!isDatabaseError(error)) throw error
        log.error({ err: error, reason: event.reason }, 'an event of the cluster could not be stored')
        return
      }
      count += 1
      if (count >= limits.maximum + surplus) retain()
      for (const wake of waiting) wake()
    },
    follow,
    count: store.count,
    beforeNewestCluster() {
      const last = store.newest()
      return last === undefined ? 0 : (store.firstOf(last.clusterUid) ?? last).id - 1
    },
    conditions() {
      const last = store.newest()
      const found = last ? store.conditions(last.clusterUid) : []
      return found.toSorted((one, two) => placeOf(one) - placeOf(two))
    },
    retain,
  }
}

const places = Object.keys(conditionTypes)
const placeOf = ({ type }: StoredCondition) => places.indexOf(type)

function isEqual(one: Omit<ClusterEvent, 'id'>, two: Omit<ClusterEvent, 'id'>): boolean {
  const keyOf = ({ clusterUid, reason, message, object, step }: Omit<ClusterEvent, 'id'>) =>
    JSON.stringify([
      ...[clusterUid, reason, message, step ?? ''],
      ...[object?.kind ?? '', object?.name ?? '', object?.namespace ?? ''],
    ])
  return keyOf(one) === keyOf(two)
}
