import { formatTime, parseTime } from '../../base/time.ts'
import { refusedField } from '../../errors/refused-field.ts'
import type { Job } from '../../room.ts'
import type { ListResource } from '../../lists/resource.ts'
import { createSqlList, type SqlCondition, type SqlList } from '../../lists/sql-list.ts'
import type { SqlField, SqlRow } from '../../lists/sql.ts'
import type { Database } from '../../store/database.ts'
import type { Reader } from '../../store/reader.ts'
import type { Clock } from '../../system/clock.ts'
import type { HostRecord } from '../hosts/host-store.ts'
import { Event, type EventEntity } from '../schemas/events.ts'
import { createScopeCounts } from '../scope-counts.ts'

export interface EventsOptions {
  readonly database: Database
  readonly read: Reader['read']
  readonly clock: Clock
  /** How many are kept. */
  readonly kept?: number
}

/** The events that hosts report. */
export interface Events {
  /**
   * Keeps the events of a host, on the disk when it returns. One whose uid the host has sent before is left out, so a report may be sent again.
   * @returns the uids, in the order of the report
   * @throws AppError BadRequest for an invalid time; then no event is kept
   */
  add(host: Pick<HostRecord, 'uid' | 'name' | 'projectUid'>, entities: readonly EventEntity[]): string[]
  readonly list: SqlList<Event>
  /** The condition of a list for a scope. */
  inScope(projectUid: string): SqlCondition
  /** Removes the oldest events. */
  readonly job: Job
}

const mostKept = 1_000_000
// A removal of more at once would hold up the requests.
const removedAtOnce = 5_000

const columns =
  'seq, uid, edge_host_uid, edge_host_name, at, received_at, severity, reason, message, component, object_kind, object_name, object_uid'

/** What queries of the list of events may name. */
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

export function createEvents({ database, read, clock, kept = mostKept }: EventsOptions): Events {
  const { sql, transaction } = database
  const insert = sql.prepare(
    `INSERT INTO event (uid, project_uid, edge_host_uid, edge_host_name, at, received_at, severity, reason, message, component, object_kind, object_name, object_uid)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (edge_host_uid, uid) DO NOTHING`,
  )
  const counts = createScopeCounts(database, 'event')
  const trim = sql.prepare(
    'DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE seq <= (SELECT max(seq) FROM event) - ? ORDER BY seq LIMIT ?)',
  )
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
      })
      return entities.map(({ metadata }) => metadata.uid)
    },
    list: createSqlList({
      ...{ resource: eventList, table: 'event', columns, toItem: toEvent, sql, read },
      count: counts.all,
    }),
    inScope: counts.condition,
    job: {
      name: 'old-events',
      schedule: '23 * * * * *',
      stuckAfterMs: 60_000,
      run() {
        trim.run(kept, removedAtOnce)
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
      ...{ number: row.seq, uid: row.uid },
      creationTimestamp: formatTime(row.at),
      receivedTimestamp: formatTime(row.received_at),
    },
    ...{ reason: row.reason, severity: row.severity },
    source: { component: row.component, host: row.edge_host_name, hostUid: row.edge_host_uid },
  }
}
