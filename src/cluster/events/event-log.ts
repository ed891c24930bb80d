// `cluster/events/reasons.ts` is the table of all reasons: the type of condition of each, its effect on it, and whether every cluster has
// it; `expectedOrder` and docs/cluster-events.md are made from it, and a test fails for a reason that the daemon never emits. `add` stores
// an event and its condition in the transaction of the caller, and wakes the readers of `follow`, who read the table from their last number
// on, so that a slow reader, a reconnection and a new event are one case. Conditions are a table of their own, since they outlive the
// retention of events. The list (`event-list.ts`) merges a page of the table with the events of Kubernetes, which are read for each
// request: within 5 s, at most 5,000. `error-logs.ts` runs journalctl within the sandbox of the unit, where root may read the journal;
// kubelet and containerd write to standard error, so their errors are found by their text.

import { conditionTypes, type ConditionType } from './condition-types.ts'
import { type ReasonName, reasonOf, expectedOrder } from './reasons.ts'
import { createHideOf } from '../../definition/slots/secrets.ts'
import type { Database } from '../../store/database.ts'
import { isDatabaseError } from '../../store/unwritable.ts'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import type { LifecycleEvents } from './schemas.ts'

/** Something that happened to the cluster or to this host for it. */
export interface ClusterEvent {
  /** Rises by at least one with each event. */
  readonly id: number
  /** Milliseconds since 1970. */
  readonly at: number
  /** One of `reasons.ts`, which says its type and its severity; a stored event of an older version may have another one. */
  readonly reason: string
  readonly message: string
  readonly severity: 'Normal' | 'Warning'
  readonly clusterUid: string
  /** Its object, for example a pack. */
  readonly object?: { readonly kind: string; readonly name: string; readonly namespace?: string }
  /** Key of its step. */
  readonly step?: string
}

export interface NewClusterEvent extends Omit<ClusterEvent, 'id' | 'at' | 'severity'> {
  readonly reason: ReasonName
}

/** The events of the cluster. They stay when the cluster is deleted, within the retention. */
export interface EventLog {
  /**
   * Stores an event, and its effect on its condition, in the open transaction if there is one; an equal event (reason, message, object,
   * step) as the last is not stored again. Readers of `follow` get it. A disk that cannot be written is logged, not thrown.
   */
  add(event: NewClusterEvent): void
  /**
   * Passes on the stored events after `since` and then new ones as they come, until the signal.
   * @param onEvent awaited, so that a slow reader gets stored events at its own pace
   */
  follow(
    since: number,
    onEvent: (event: ClusterEvent) => Promise<void> | void,
    signal: AbortSignal,
  ): Promise<void>
}

/** Adds an event of a cluster, with its sensitive values masked, also in the key of a step, which names releases. */
export type AddEvent = (
  record: { readonly uid: string; readonly sensitive: readonly string[] },
  event: Omit<NewClusterEvent, 'clusterUid'>,
) => void

export const createAddEvent =
  (events: Pick<EventLog, 'add'>): AddEvent =>
  ({ uid, sensitive }, { step, message, ...event }) => {
    const hide = createHideOf(sensitive)
    events.add({
      ...event,
      clusterUid: uid,
      message: hide(message),
      ...(step === undefined ? {} : { step: hide(step) }),
    })
  }

/** A condition, as its newest event has left it. */
interface StoredCondition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  /** Time of the last change of `status`, milliseconds since 1970. */
  readonly transitionAt: number
  /** Time of its last event, milliseconds since 1970. */
  readonly probeAt: number
}

/** Events and conditions on the disk. The caller runs the writes in its transaction. */
interface EventStore {
  put(event: Omit<ClusterEvent, 'id'>): void
  putCondition(clusterUid: string, condition: Omit<StoredCondition, 'transitionAt'>): void
  /** The conditions of a cluster, in no order. */
  conditions(clusterUid: string): readonly StoredCondition[]
  /** Forgets the conditions of every other cluster. */
  keepConditionsOf(clusterUid: string): void
  /** Events after a number, the oldest first. */
  after(id: number, limit: number): readonly ClusterEvent[]
  newest(): ClusterEvent | undefined
  /** The first event of a cluster that is left. */
  firstOf(clusterUid: string): ClusterEvent | undefined
  /** The highest number that was ever given. */
  lastId(): number
  count(): number
  /** Removes the events up to the newest one that is older than a time, and the oldest of more than `maximum`. */
  retain(oldestAt: number, maximum: number): void
}

/** All columns of an event. */
export const eventColumns =
  'id, at, cluster_uid, reason, severity, message, object_kind, object_name, object_namespace, step'

export function createEventStore({ sql }: Database): EventStore {
  const put = sql.prepare(
    `INSERT INTO cluster_event (${eventColumns}) VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const putCondition = sql.prepare(`
    INSERT INTO cluster_condition (cluster_uid, type, status, reason, message, transition_at, probe_at)
    VALUES (?, ?, ?, ?, ?, ?6, ?6)
    ON CONFLICT (cluster_uid, type) DO UPDATE SET
      transition_at = CASE WHEN status = excluded.status THEN transition_at ELSE excluded.transition_at END,
      status = excluded.status, reason = excluded.reason, message = excluded.message, probe_at = excluded.probe_at`)
  const conditions = sql.prepare(`
    SELECT type, status, reason, message, transition_at AS transitionAt, probe_at AS probeAt
    FROM cluster_condition WHERE cluster_uid = ?`)
  const keepConditionsOf = sql.prepare('DELETE FROM cluster_condition WHERE cluster_uid <> ?')
  const after = sql.prepare(`SELECT ${eventColumns} FROM cluster_event WHERE id > ? ORDER BY id LIMIT ?`)
  const newest = sql.prepare(`SELECT ${eventColumns} FROM cluster_event ORDER BY id DESC LIMIT 1`)
  const firstOf = sql.prepare(
    `SELECT ${eventColumns} FROM cluster_event WHERE cluster_uid = ? ORDER BY id LIMIT 1`,
  )
  // The table of SQLite for AUTOINCREMENT.
  const lastId = sql.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'cluster_event'")
  const count = sql.prepare('SELECT count(*) AS count FROM cluster_event')
  const removeOlder = sql.prepare(
    'DELETE FROM cluster_event WHERE id <= (SELECT max(id) FROM cluster_event WHERE at < ?)',
  )
  const removeOldest = sql.prepare(
    'DELETE FROM cluster_event WHERE id <= (SELECT id FROM cluster_event ORDER BY id DESC LIMIT 1 OFFSET ?)',
  )
  const one = (row: EventRow | undefined) => row && eventOf(row)

  return {
    put({ at, clusterUid, reason, severity, message, object, step }) {
      const { kind = '', name = '', namespace = '' } = object ?? {}
      put.run(at, clusterUid, reason, severity, message, kind, name, namespace, step ?? '')
    },
    putCondition: (clusterUid, { type, status, reason, message, probeAt }) =>
      void putCondition.run(clusterUid, type, status, reason, message, probeAt),
    conditions: (clusterUid) => conditions.all(clusterUid) as unknown as StoredCondition[],
    keepConditionsOf: (clusterUid) => void keepConditionsOf.run(clusterUid),
    after: (id, limit) => (after.all(id, limit) as unknown as EventRow[]).map(eventOf),
    newest: () => one(newest.get() as EventRow | undefined),
    firstOf: (clusterUid) => one(firstOf.get(clusterUid) as EventRow | undefined),
    lastId: () => Number(lastId.get()?.seq ?? 0),
    count: () => Number(count.get()?.count),
    retain(oldestAt, maximum) {
      removeOlder.run(oldestAt)
      removeOldest.run(maximum)
    },
  }
}

/** A row of the table. */
export interface EventRow {
  readonly id: number
  readonly at: number
  readonly cluster_uid: string
  readonly reason: string
  readonly severity: string
  readonly message: string
  readonly object_kind: string
  readonly object_name: string
  readonly object_namespace: string
  readonly step: string
}

/** The event of a row. */
export const eventOf = (row: EventRow): ClusterEvent => ({
  id: row.id,
  at: row.at,
  clusterUid: row.cluster_uid,
  reason: row.reason,
  severity: row.severity === 'Warning' ? 'Warning' : 'Normal',
  message: row.message,
  ...(row.object_kind && {
    object: {
      kind: row.object_kind,
      name: row.object_name,
      ...(row.object_namespace && { namespace: row.object_namespace }),
    },
  }),
  ...(row.step && { step: row.step }),
})

interface EventLogOptions {
  readonly database: Database
  readonly limits: EventLimits
  /** Called for each event, in the transaction that stores it. */
  readonly onStored?: (event: Omit<ClusterEvent, 'id'>) => void
  readonly clock: Clock
  readonly log: Logger
}

/** Retention of events. */
export interface EventLimits {
  readonly retentionDays: number
  /** Most events; beyond it the oldest are removed. */
  readonly maximum: number
}

/** The event log with the methods of its room. */
export interface StoredEventLog extends EventLog {
  /** Number of stored events. */
  count(): number
  /** Number of the event before the first of the newest cluster: `follow` from it gives all of its events. */
  beforeNewestCluster(): number
  /** The conditions of the newest cluster, in the order in which they come up. */
  conditions(): readonly StoredCondition[]
  /** Removes events beyond the limits; a job calls it. */
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

type Condition = LifecycleEvents['clusterEvents'][number]

/** The conditions of the newest cluster or of this host for it, in the order in which they come up. */
export const conditionsOf = (events: StoredEventLog, of: ConditionType['of']): Condition[] =>
  events
    .conditions()
    .filter(({ type }) => (conditionTypes as Readonly<Record<string, ConditionType>>)[type]?.of === of)
    .map(toCondition)

/** Reached milestones of the cluster. */
export const lifecycleOf = (events: StoredEventLog): LifecycleEvents => ({
  clusterEvents: conditionsOf(events, 'cluster'),
  edgeHostEvents: conditionsOf(events, 'host'),
  expectedOrder: expectedOrder(),
})

const toCondition = ({
  type,
  status,
  reason,
  message,
  transitionAt,
  probeAt,
}: StoredCondition): Condition => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: new Date(transitionAt).toISOString(),
  lastProbeTime: new Date(probeAt).toISOString(),
})
