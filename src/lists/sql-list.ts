import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { setImmediate as breathe, setTimeout as rest } from 'node:timers/promises'
import { defaultOrder } from './filter.ts'
import { makePage, type Page } from './page.ts'
import type { ListQuery } from './query.ts'
import { fieldAt, type ListResource } from './resource.ts'
import {
  createStatements,
  type SqlField,
  type SqlIndexes,
  type SqlRow,
  type SqlSource,
  type SqlText,
} from './sql.ts'

export interface SqlListOptions<Item> extends SqlSource {
  readonly resource: ListResource<SqlField>
  /** Converts a row to its shape on the wire; called only for the rows of the page. */
  readonly toItem: (row: SqlRow) => Item
  /** Number of rows of the table, kept by the room: counting a million rows would block the event loop for too long. */
  readonly count: () => number
  readonly sql: DatabaseSync
  /** For a list that is read with a condition: the indexes that filters use. Without them, SQLite chooses. */
  readonly indexes?: SqlIndexes
  /** Reads outside the event loop, all statements from one state of the database; `createReader` of the store. */
  readonly read: (statements: readonly SqlText[]) => Promise<readonly (readonly SqlRow[])[]>
}

/** A further condition on the rows that the room sets, written in its code. */
export interface SqlCondition extends SqlText {
  /**
   * Number of its rows, where the room keeps it. An index must then begin with the columns of the condition, followed by the default order.
   */
  readonly count?: () => number
}

/** A list of SQLite rows. */
export interface SqlList<Item> {
  page(query: ListQuery, condition?: SqlCondition): Promise<Page<Item>>
}

// Skipping this many index entries takes half a millisecond, on a small board a few milliseconds.
const nearOffset = 1_000
// So many index entries are read in a quarter of a millisecond; of conditions that more rows match, any one is as good.
const probedRows = 5_000
// Where few rows match one condition, another one is only probed as far as so many times fewer rows may match it.
const worthProbing = 4

// A shorter page holds up others for less than a handshake does.
const longPageMs = 10
// Time in which the process was stopped does not count for the page.
const mostRestMs = 1_000

interface Chosen {
  readonly index: string
  /** Whether few rows match its condition, so that they are read at once. */
  readonly isShort: boolean
}

/**
 * Lists rows without blocking the event loop. A page in the default order, which has an index, is read at once: the
 * last of a million rows takes as long as the first. So is a filter by an index of which few entries match. Other queries
 * (filters, other orders, large offsets and their counts) may have to visit every row and are read in another thread.
 */
export function createSqlList<Item>(options: SqlListOptions<Item>): SqlList<Item> {
  const { resource, toItem, count, sql, indexes, read } = options
  const statements = createStatements(resource, options)
  const usual = JSON.stringify(defaultOrder(resource))

  // One for each index and condition of the room; no text of a client is a part of them.
  const probes = new Map<string, StatementSync>()
  function prepared(text: string): StatementSync {
    const known = probes.get(text) ?? sql.prepare(text)
    probes.set(text, known)
    return known
  }

  /** The index of the condition that fewest rows match, or of all columns where the filter has alternatives. */
  function indexFor({ filter }: ListQuery, condition: SqlCondition): Chosen | undefined {
    if (indexes === undefined || filter.length === 0) return undefined
    const [all = [], ...others] = filter
    if (others.length > 0) return { index: indexes.whole, isShort: false }
    const fields = all.map(({ path, value }) => ({ ...fieldAt(resource, path), value }))
    if (fields.some(({ column }) => indexes.unique.includes(column))) return undefined
    let least: { readonly index: string; readonly rows: number } | undefined
    for (const { column, value } of fields) {
      const index = indexes.narrow[column] ?? indexes.byColumn[column]
      if (index === undefined) continue
      const probe = prepared(
        `SELECT count(*) AS found FROM (SELECT 1 FROM ${options.table} INDEXED BY ${index} WHERE (${condition.sql}) AND ${column} = ? LIMIT ?)`,
      )
      const isFew = least !== undefined && least.rows < probedRows
      const limit = isFew ? Math.ceil((least?.rows ?? 0) / worthProbing) : probedRows
      const rows = Number(probe.get(...condition.values, value, limit)?.found)
      if (least === undefined || rows < limit) least = { index, rows }
    }
    if (least === undefined) return { index: indexes.whole, isShort: false }
    // Rows that need a read of the table are read elsewhere.
    const isCovered = fields.every(
      ({ column, part }) => part !== undefined || Object.hasOwn(indexes.byColumn, column),
    )
    return { index: least.index, isShort: least.rows < probedRows && isCovered }
  }

  let lastTurn: Promise<unknown> = Promise.resolve()
  /**
   * Waits while another page is made, and as long again after a long one, up to a second: of many that are asked for at once each would hold up
   * all else, and a new connection needs several turns of the event loop.
   */
  function ownTurn(): Promise<unknown> {
    const turn = lastTurn
    lastTurn = turn.then(async () => {
      const since = performance.now()
      await breathe()
      const tookMs = performance.now() - since
      if (tookMs >= longPageMs) await rest(Math.min(tookMs, mostRestMs))
    })
    return turn
  }

  return {
    async page(query, condition) {
      await ownTurn()
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
      const chosen = condition && indexFor(query, condition)
      const both = [
        statements.page(query, condition, chosen?.index),
        statements.count(query, condition, chosen?.index),
      ] as const
      const isAtOnce = chosen?.isShort === true && JSON.stringify(order) === usual
      const readHere = ({ sql: text, values }: SqlText) => sql.prepare(text).all(...values)
      const [rows = [], [total] = []] = isAtOnce ? both.map(readHere) : await read(both)
      return found(rows, Number(total?.count))
    },
  }
}
