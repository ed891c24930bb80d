import type { DatabaseSync } from 'node:sqlite'
import { defaultOrder } from './order.ts'
import { makePage, type Page } from './page.ts'
import type { ListQuery } from './query.ts'
import type { ListResource } from './resource.ts'
import { createStatements, type SqlField, type SqlRow, type SqlSource, type SqlText } from './sql.ts'

export interface SqlListOptions<Item> extends SqlSource {
  readonly resource: ListResource<SqlField>
  /** Converts a row to its shape on the wire; called only for the rows of the page. */
  readonly toItem: (row: SqlRow) => Item
  /** Number of rows of the table, kept by the room: counting a million rows would block the event loop for too long. */
  readonly count: () => number
  readonly sql: DatabaseSync
  /** Reads outside the event loop, all statements from one state of the database; `createReader` of the store. */
  readonly read: (statements: readonly SqlText[]) => Promise<readonly (readonly SqlRow[])[]>
}

/** A further condition on the rows that the room sets, written in its code. */
export interface SqlCondition extends SqlText {
  /**
   * Number of its rows, where the room keeps it. An index must then begin with the columns of the condition, followed by those of the default
   * order.
   */
  readonly count?: () => number
}

/** A list of SQLite rows. */
export interface SqlList<Item> {
  page(query: ListQuery, condition?: SqlCondition): Promise<Page<Item>>
}

// Skipping this many index entries takes half a millisecond, on a small board a few milliseconds.
const nearOffset = 1_000

/**
 * Lists rows without blocking the event loop. A page in the default order, which has an index, is read at once: the
 * last of a million rows takes as long as the first. Other queries (filters, other orders, large offsets and their
 * counts) may have to visit every row and are read in another thread.
 */
export function createSqlList<Item>(options: SqlListOptions<Item>): SqlList<Item> {
  const { resource, toItem, count, sql, read } = options
  const statements = createStatements(resource, options)
  const usual = JSON.stringify(defaultOrder(resource))

  return {
    async page(query, condition) {
      const { filter, order, after, offset } = query
      const page = statements.page(query, condition)
      const kept = filter.length > 0 ? undefined : condition === undefined ? count : condition.count
      const isNear = after !== undefined || offset <= nearOffset
      const found = (rows: readonly SqlRow[], total: number) =>
        makePage(query, {
          rows,
          count: total,
          valuesOf: (row) => statements.valuesOf(query, row),
          toItem,
        })
      if (kept && isNear && JSON.stringify(order) === usual)
        return found(sql.prepare(page.sql).all(...page.values), kept())
      if (kept) {
        const [rows = []] = await read([page])
        return found(rows, kept())
      }
      const [rows = [], [total] = []] = await read([page, statements.count(query, condition)])
      return found(rows, Number(total?.count))
    },
  }
}
