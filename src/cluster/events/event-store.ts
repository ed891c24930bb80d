import type { Database } from '../../store/database.ts'
import type { ClusterEvent } from './event-log.ts'

/** A condition, as the newest event that says something about it has left it. */
export interface StoredCondition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  /** When `status` changed last, milliseconds since 1970. */
  readonly transitionAt: number
  /** When an event said last what it is, milliseconds since 1970. */
  readonly probeAt: number
}

/** Events and conditions on the disk. The caller runs the writes in its transaction. */
export interface EventStore {
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
      ...{ kind: row.object_kind, name: row.object_name },
      ...(row.object_namespace && { namespace: row.object_namespace }),
    },
  }),
  ...(row.step && { step: row.step }),
})
