import type { TSchema } from 'typebox'
import type { Page } from '../lists/page.ts'
import { refuse, type ListResource } from '../lists/resource.ts'
import type { ListQuery } from '../lists/query.ts'
import { createSqlList, type SqlListOptions } from '../lists/sql-list.ts'
import type { SqlField, SqlText } from '../lists/sql.ts'
import { parseTime } from '../base/time.ts'
import type { Database } from '../store/database.ts'
import type { AuditRecord } from './record.ts'
import { Audit, timeForm, type AuditsQuery, type AuditView } from './schemas.ts'
import { auditColumns, type TrailStore } from './trail-store.ts'

/**
 * Fields for queries of the list of the trail.
 * @param fields that differ between programs
 * @param item schema of a record
 */
export const auditListOf = (
  fields: ListResource<SqlField>['fields'],
  item: TSchema,
): ListResource<SqlField> => ({
  name: 'audits',
  fields: {
    'metadata.number': { type: 'integer', column: 'seq' },
    'metadata.uid': { type: 'text', column: 'uid' },
    'spec.actionType': { type: 'text', column: 'action' },
    'spec.resource.kind': { type: 'text', column: 'kind' },
    ...fields,
  },
  key: 'metadata.number',
  // Newest first, by number instead of time: a clock may be set back.
  defaultOrder: [{ path: 'metadata.number', direction: -1 }],
  item,
})

/** The fields by which clients may filter and order audits. */
export const auditList = auditListOf(
  {
    'metadata.createTimestamp': { type: 'time', column: 'at' },
    'spec.actor.uid': { type: 'text', column: 'actor' },
  },
  Audit,
)

export interface Search {
  /** A page of the records. */
  page(query: ListQuery, wanted: AuditsQuery): Promise<Page<AuditView>>
  /** The existing values of every filter. */
  filters(): Record<string, { label: string; value: string }[]>
}

export interface SearchOptions {
  readonly database: Database
  readonly store: TrailStore
  readonly read: SqlListOptions<AuditView>['read']
  /** Number of the newest record. */
  readonly head: () => number
  readonly edgeHostId: string
}

/** The columns that the list reads: all except the hashes, which it does not show. */
export const listColumns = auditColumns.selected((field) => field !== 'hash' && field !== 'previousHash')

// A directory may have many more accounts.
const mostValues = 200

// Uses the index to jump from value to value: as fast for a million records as for ten.
const distinct = (column: string) => `
  WITH RECURSIVE each(value) AS (
    SELECT min(${column}) FROM audit
    UNION ALL
    SELECT (SELECT min(${column}) FROM audit WHERE ${column} > value) FROM each WHERE value IS NOT NULL
  )
  SELECT value FROM each WHERE value <> '' LIMIT ${mostValues}`

export function createSearch({ database: { sql }, store, read, head, edgeHostId }: SearchOptions): Search {
  const list = createSqlList<AuditView>({
    resource: auditList,
    table: 'audit',
    columns: listColumns,
    toItem: (row) => viewOf(row as unknown as AuditRecord, edgeHostId),
    count: () => countOf(head(), store.first()),
    sql,
    read,
  })
  const values = (column: string) => {
    const statement = sql.prepare(distinct(column))
    return () => statement.all().map(({ value }) => ({ label: String(value), value: String(value) }))
  }
  const [users, kinds, actions] = [values('actor'), values('kind'), values('action')]
  return {
    page: async (query, wanted) => list.page(query, allOf(conditionsOf(wanted))),
    filters: () => ({ userUid: users(), resourceKind: kinds(), actionType: actions() }),
  }
}

/** Number of records: their numbers have no gaps. */
export const countOf = (head: number, first: number): number => (head === 0 ? 0 : head - first + 1)

/** A condition with one `?`, and the value for it. */
export type Comparison = readonly [sql: string, value: string | number]

/** The condition that all hold; `undefined` for none. */
export const allOf = (parts: readonly Comparison[]): SqlText | undefined =>
  parts.length === 0
    ? undefined
    : { sql: parts.map(([text]) => text).join(' AND '), values: parts.map(([, value]) => value) }

type Times = Pick<AuditsQuery, 'startTime' | 'endTime'>

/** Selection of records by parameters of the query. */
export interface Selection<Query> {
  /** @throws AppError BadRequest */
  conditionsOf(wanted: Query): Comparison[]
  /** The values that a page token is bound to. */
  boundOf(wanted: Query): (string | undefined)[]
}

/**
 * Selects by `startTime` and `endTime`, and by parameters that are each compared with a column. One that is empty is not set.
 * @param columns of these parameters
 */
export function selectBy<Name extends string>(
  columns: Readonly<Record<Name, string>>,
): Selection<Times & Partial<Readonly<Record<Name, string>>>> {
  const names = Object.keys(columns) as Name[]
  return {
    conditionsOf(wanted) {
      const { startTime, endTime } = wanted
      return [
        ...(startTime ? [['at >= ?', timeOf('startTime', startTime)] as const] : []),
        ...(endTime ? [['at <= ?', timeOf('endTime', endTime)] as const] : []),
        ...names.flatMap((name) => {
          const value: string | undefined = wanted[name]
          return value ? [[`${columns[name]} = ?`, value] as const] : []
        }),
      ]
    },
    boundOf: (wanted) =>
      [wanted.startTime, wanted.endTime, ...names.map((name) => wanted[name])].map(
        (each) => each || undefined,
      ),
  }
}

const { conditionsOf, boundOf } = selectBy({ userUid: 'actor', resourceKind: 'kind', actionType: 'action' })
export { boundOf }

function timeOf(name: string, text: string): number {
  const time = parseTime(text)
  if (time === undefined) throw refuse(name, `${name} must be ${timeForm}`)
  return time
}

function viewOf(record: AuditRecord, edgeHostId: string): AuditView {
  const { seq, uid, at, actorType, address, role, action, message, outcome, requestId, status } = record
  const { kind, resourceName, resourceUid } = record
  // No account of a host is an operator, and no service calls it.
  return {
    metadata: { createTimestamp: new Date(at).toISOString(), edgeHostId, number: seq, uid },
    spec: {
      actionType: action,
      actor: {
        actorType: actorType === 'service' ? 'system' : actorType,
        uid: record.actor,
        ...(address && { address }),
        ...(role && role !== 'operator' && { role }),
      },
      message,
      outcome,
      resource: {
        kind,
        ...(resourceName && { name: resourceName }),
        ...(resourceUid && { uid: resourceUid }),
      },
      ...(requestId && { requestId }),
      ...(status !== null && { status }),
    },
  }
}
