import type { DatabaseSync } from 'node:sqlite'
import { defaultOrder } from './order.ts'
import { makePage, type Page } from './page.ts'
import type { ListQuery } from './query.ts'
import type { ListResource } from './resource.ts'
import { createStatements, type SqlField, type SqlRow, type SqlSource, type SqlText } from './sql.ts'

export interface SqlListOptions<Item> extends SqlSource {
  readonly resource: ListResource<SqlField>
  /** Shape of a row on the wire; called for the rows of the page only. */
  readonly toItem: (row: SqlRow) => Item
  /** Rows of the table, a figure that the room keeps: counting a million takes longer than the loop may be held. */
  readonly count: () => number
  readonly sql: DatabaseSync
  /** Reads beside the loop, all statements from one state of the database; `createReader` of the store. */
  readonly read: (statements: readonly SqlText[]) => Promise<readonly (readonly SqlRow[])[]>
}

/** A list of SQLite rows. */
export interface SqlList<Item> {
  /** @param condition what the room itself demands of the rows, in words of its code */
  page(query: ListQuery, condition?: SqlText): Promise<Page<Item>>
}

// So many index entries are passed over in half a millisecond, on a small board in a few.
const nearOffset = 1_000

/**
 * Lists rows without holding the event loop. A page in the default order, which has its index, is read at once: that
 * takes as long for the last of a million rows as for the first. Whatever else is asked, filters, other orders, far
 * offsets and the counts of these, may have to look at every row and is read beside the loop.
 */
export function createSqlList<Item>(options: SqlListOptions<Item>): SqlList<Item> {
  const { resource, toItem, count, sql, read } = options
  const statements = createStatements(resource, options)
  const usual = JSON.stringify(defaultOrder(resource))

  return {
    async page(query, condition) {
      const { filter, order, after, offset } = query
      const page = statements.page(query, condition)
      const isWhole = filter.length === 0 && condition === undefined
      const isNear = after !== undefined || offset <= nearOffset
      const found = (rows: readonly SqlRow[], total: number) =>
        makePage(query, {
          rows,
          count: total,
          valuesOf: (row) => statements.valuesOf(query, row),
          toItem,
        })
      if (isWhole && isNear && JSON.stringify(order) === usual)
        return found(sql.prepare(page.sql).all(...page.values), count())
      if (isWhole) {
        const [rows = []] = await read([page])
        return found(rows, count())
      }
      const [rows = [], [total] = []] = await read([page, statements.count(query, condition)])
      return found(rows, Number(total?.count))
    },
  }
}
