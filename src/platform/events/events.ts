import { scopeCountsOf, createScopeCounts } from '../scope-counts.ts'
import { formatTime, parseTime } from '../../base/time.ts'
import { refusedField } from '../../errors/refused-field.ts'
import type { Job } from '../../root/room.ts'
import type { ListResource } from '../../lists/resource.ts'
import { createSqlList, type SqlCondition, type SqlList } from '../../lists/sql-list.ts'
import type { SqlField, SqlRow } from '../../lists/sql.ts'
import type { Database } from '../../store/database.ts'
import type { Reader } from '../../store/reader.ts'
import type { Clock } from '../../system/clock.ts'
import type { HostRecord } from '../hosts/store.ts'
import { Event, type EventEntity } from './schemas.ts'

/** Events that hosts report; a host names each by a uid of its own, so that one that is sent again is known. */
export const eventTables = `
  CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    uid TEXT NOT NULL,
    project_uid TEXT NOT NULL,
    edge_host_uid TEXT NOT NULL,
    edge_host_name TEXT NOT NULL,
    at INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    severity TEXT NOT NULL,
    reason TEXT NOT NULL,
    message TEXT NOT NULL,
    component TEXT NOT NULL,
    object_kind TEXT NOT NULL,
    object_name TEXT NOT NULL,
    object_uid TEXT NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX event_of_host ON event (edge_host_uid, uid);
  CREATE INDEX event_scope ON event (project_uid, seq);${scopeCountsOf('event')}
`

/**
 * Number and bytes of the events of each host, so that the excess goes when a report arrives. The row without a host is the
 * sum of all. The bytes are of the texts, and some for the row and its entries in the indexes.
 */
export const eventShares = `
  ALTER TABLE event ADD COLUMN bytes INTEGER AS (
    200 + octet_length(uid) * 2 + octet_length(project_uid) * 2 + octet_length(edge_host_uid) * 3 + octet_length(edge_host_name)
    + octet_length(severity) + octet_length(reason) + octet_length(message) + octet_length(component) + octet_length(object_kind)
    + octet_length(object_name) + octet_length(object_uid));
  CREATE INDEX event_by_host ON event (edge_host_uid, seq);
  CREATE TABLE event_share (
    edge_host_uid TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    bytes INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  INSERT INTO event_share SELECT edge_host_uid, count(*), sum(bytes) FROM event GROUP BY edge_host_uid;
  INSERT INTO event_share SELECT '', count(*), coalesce(sum(bytes), 0) FROM event;
  CREATE TRIGGER event_has_share AFTER INSERT ON event
  BEGIN
    INSERT INTO event_share (edge_host_uid, number, bytes) VALUES (NEW.edge_host_uid, 1, NEW.bytes)
      ON CONFLICT (edge_host_uid) DO UPDATE SET number = number + 1, bytes = bytes + excluded.bytes;
    UPDATE event_share SET number = number + 1, bytes = bytes + NEW.bytes WHERE edge_host_uid = '';
  END;
  CREATE TRIGGER event_has_share_no_more AFTER DELETE ON event
  BEGIN
    UPDATE event_share SET number = number - 1, bytes = bytes - OLD.bytes WHERE edge_host_uid IN (OLD.edge_host_uid, '');
    DELETE FROM event_share WHERE edge_host_uid = OLD.edge_host_uid AND number = 0;
  END;
`

interface EventsOptions {
  readonly database: Database
  readonly read: Reader['read']
  readonly clock: Clock
  readonly limits?: { readonly ofHost: EventLimit; readonly all: EventLimit }
}

/** Limit of the kept events; beyond it the oldest go. */
export interface EventLimit {
  readonly number: number
  /** Of the database, about. */
  readonly bytes: number
}

/** The events that hosts report. */
export interface Events {
  /**
   * Keeps the events of a host, on the disk when it returns. One whose uid the host has sent before is left out, so a report may be sent again.
   * The oldest events of the host beyond its limit go in the same transaction, and so do the oldest of all.
   * @returns the uids, in the order of the report
   * @throws AppError BadRequest for an invalid time; then no event is kept
   */
  add(host: Pick<HostRecord, 'uid' | 'name' | 'projectUid'>, entities: readonly EventEntity[]): string[]
  readonly list: SqlList<Event>
  /** The condition of a list for a scope. */
  inScope(projectUid: string): SqlCondition
  /** Removes the oldest events of all, where a report could not, as of a database that had no limits of hosts. */
  readonly job: Job
}

/** A host that was away sends its whole queue, which has 10,000 events; most have some hundred bytes. */
const limitOfHost: EventLimit = { number: 20_000, bytes: 16_777_216 }
const limitOfAll: EventLimit = { number: 1_000_000, bytes: 1_073_741_824 }
// More than a report can bring, so that the excess shrinks with each. A removal of many at once would hold up the requests.
const removedAtReport = 1_000
const removedByJob = 5_000

const columns =
  'seq, uid, edge_host_uid, edge_host_name, at, received_at, severity, reason, message, component, object_kind, object_name, object_uid'

/** Queryable fields of the list of events. */
export const eventList: ListResource<SqlField> = {
  name: 'events',
  key: 'metadata.number',
  fields: {
    'metadata.number': { type: 'integer', column: 'seq' },
    'metadata.uid': { type: 'text', column: 'uid' },
    'metadata.creationTimestamp': { type: 'time', column: 'at' },
    'involvedObject.kind': { type: 'text', column: 'object_kind' },
    'involvedObject.uid': { type: 'text', column: 'object_uid' },
    reason: { type: 'text', column: 'reason' },
    severity: { type: 'text', column: 'severity' },
    'source.component': { type: 'text', column: 'component' },
    'source.host': { type: 'text', column: 'edge_host_name' },
    'source.hostUid': { type: 'text', column: 'edge_host_uid' },
  },
  // As they were received: the clocks of hosts differ.
  defaultOrder: [{ path: 'metadata.number', direction: -1 }],
  item: Event,
}

export function createEvents({
  database,
  read,
  clock,
  limits = { ofHost: limitOfHost, all: limitOfAll },
}: EventsOptions): Events {
  const { sql, transaction } = database
  const insert = sql.prepare(
    `INSERT INTO event (uid, project_uid, edge_host_uid, edge_host_name, at, received_at, severity, reason, message, component, object_kind, object_name, object_uid)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (edge_host_uid, uid) DO NOTHING`,
  )
  const counts = createScopeCounts(database, 'event')
  const share = sql.prepare('SELECT number, bytes FROM event_share WHERE edge_host_uid = ?')
  const trimHost = sql.prepare(
    'DELETE FROM event WHERE seq IN (SELECT seq FROM event INDEXED BY event_by_host WHERE edge_host_uid = ? ORDER BY seq LIMIT ?)',
  )
  const trimAll = sql.prepare('DELETE FROM event WHERE seq IN (SELECT seq FROM event ORDER BY seq LIMIT ?)')

  /** Removes the events beyond a limit, the oldest first. @param hostUid empty for the events of all hosts */
  function retain(hostUid: string, limit: EventLimit, most: number): void {
    for (let removed = 0; removed < most;) {
      const { number = 0, bytes = 0 } = (share.get(hostUid) ?? {}) as Partial<EventLimit>
      // By the mean of all, so that the next call has less to remove.
      const heavy = bytes > limit.bytes ? Math.ceil((number * (bytes - limit.bytes)) / bytes) : 0
      const surplus = Math.max(number - limit.number, heavy)
      if (surplus <= 0) return
      const count = Math.min(surplus, most - removed)
      if (hostUid === '') trimAll.run(count)
      else trimHost.run(hostUid, count)
      removed += count
    }
  }

  return {
    add(host, entities) {
      const now = clock.now()
      transaction(() => {
        for (const [index, entity] of entities.entries()) {
          const { metadata, severity, reason, message, source, involvedObject = {} } = entity
          const at = parseTime(metadata.creationTimestamp)
          if (at === undefined) throw refusedField(`[${index}].metadata.creationTimestamp`, 'is no time')
          insert.run(
            ...[metadata.uid, host.projectUid, host.uid, host.name, at, now],
            ...[severity, reason, message, source?.component ?? ''],
            ...[involvedObject.kind ?? '', involvedObject.name ?? '', involvedObject.uid ?? ''],
          )
        }
        retain(host.uid, limits.ofHost, removedAtReport)
        retain('', limits.all, removedAtReport)
      })
      return entities.map(({ metadata }) => metadata.uid)
    },
    list: createSqlList({
      resource: eventList,
      table: 'event',
      columns,
      toItem: toEvent,
      sql,
      read,
      count: counts.all,
    }),
    inScope: counts.condition,
    job: {
      name: 'old-events',
      schedule: '23 * * * * *',
      stuckAfterMs: 60_000,
      run() {
        transaction(() => retain('', limits.all, removedByJob))
      },
    },
  }
}

interface Row {
  readonly seq: number
  readonly uid: string
  readonly edge_host_uid: string
  readonly edge_host_name: string
  readonly at: number
  readonly received_at: number
  readonly severity: Event['severity']
  readonly reason: string
  readonly message: string
  readonly component: string
  readonly object_kind: string
  readonly object_name: string
  readonly object_uid: string
}

function toEvent(columnsOfRow: SqlRow): Event {
  const row = columnsOfRow as unknown as Row
  return {
    involvedObject: { kind: row.object_kind, name: row.object_name, uid: row.object_uid },
    message: row.message,
    metadata: {
      number: row.seq,
      uid: row.uid,
      creationTimestamp: formatTime(row.at),
      receivedTimestamp: formatTime(row.received_at),
    },
    reason: row.reason,
    severity: row.severity,
    source: { component: row.component, host: row.edge_host_name, hostUid: row.edge_host_uid },
  }
}
