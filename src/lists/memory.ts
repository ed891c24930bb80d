import { makePage, type Page } from './page.ts'
import type { ListQuery } from './query.ts'
import { fieldAt, type FieldValue, type ListField, type ListResource } from './resource.ts'

/** A field of a list that is kept in memory. */
export interface MemoryField<Row> extends ListField {
  /**
   * The value used for comparison; for a `time`, milliseconds since 1970. A field that is not ordered may have several: a filter then
   * matches any of them.
   */
  readonly read: (row: Row) => FieldValue | boolean | readonly FieldValue[]
}

/**
 * Returns a page of a list that is kept in memory, by the same rules as for a list in SQLite. It visits every row,
 * which suits lists of hundreds to a few thousand rows: 2,000 rows take a few milliseconds.
 * @param toItem converts a row to its shape on the wire; called only for the rows of the page
 */
export function listInMemory<Row, Item>(
  rows: readonly Row[],
  query: ListQuery,
  resource: ListResource<MemoryField<Row>>,
  toItem: (row: Row) => Item,
): Page<Item> {
  const { filter, order, after, offset, limit } = query
  const alternatives = filter.map((all) =>
    all.map(({ path, value }) => {
      const { read } = fieldAt(resource, path)
      return (row: Row) => {
        const found = read(row)
        return typeof found === 'object' ? found.includes(value) : comparable(found) === value
      }
    }),
  )
  const matching = rows.filter(
    (row) => alternatives.length === 0 || alternatives.some((all) => all.every((matches) => matches(row))),
  )

  const reads = order.map(({ path }) => {
    const { read } = fieldAt(resource, path)
    return (row: Row) => comparable(read(row))
  })
  const compare = comparison(order)
  const ordered = matching
    .map((row) => ({ row, values: reads.map((read) => read(row)) }))
    .filter(({ values }) => after === undefined || compare(values, after) > 0)
    .sort((one, two) => compare(one.values, two.values))

  const start = after === undefined ? offset : 0
  return makePage(query, {
    rows: ordered.slice(start, start + limit + 1),
    count: matching.length,
    valuesOf: ({ values }) => values,
    toItem: ({ row }) => toItem(row),
  })
}

function comparable(value: FieldValue | boolean | readonly FieldValue[]): FieldValue {
  if (typeof value === 'object') throw new Error('a field with several values has no order')
  return typeof value === 'boolean' ? Number(value) : value
}

/** Compares rows by their values, one for each term of an order. */
export const comparison =
  (order: ListQuery['order']) =>
  (one: readonly FieldValue[], two: readonly FieldValue[]): number => {
    for (const [index, { direction }] of order.entries()) {
      const difference = compareValues(one[index] ?? '', two[index] ?? '')
      if (difference !== 0) return difference * direction
    }
    return 0
  }

/** Compares as SQLite does: numbers before text, text by its UTF-8 bytes. */
export function compareValues(one: FieldValue, two: FieldValue): number {
  if (typeof one === 'number') return typeof two === 'number' ? one - two : -1
  if (typeof two === 'number') return 1
  const shorter = Math.min(one.length, two.length)
  for (let index = 0; index < shorter; index += 1) {
    const [a, b] = [one.charCodeAt(index), two.charCodeAt(index)]
    if (a === b) continue
    // UTF-16 sorts U+10000 and above before U+E000; UTF-8 bytes do not.
    return isSurrogate(a) === isSurrogate(b) ? a - b : Number(isSurrogate(a)) - Number(isSurrogate(b))
  }
  return one.length - two.length
}

const isSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdfff
