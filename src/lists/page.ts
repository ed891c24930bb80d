import { Type, type Static, type TSchema } from 'typebox'
import { pruneItem, type Pruned } from './fields.ts'
import type { ListQuery } from './query.ts'
import type { FieldValue } from './resource.ts'

/** Paging figures of a list reply. */
export const ListMeta = Type.Object({
  continue: Type.String({ description: 'Token of the next page; empty at the end.' }),
  count: Type.Integer({ description: 'Total number of resources.' }),
  limit: Type.Integer({ description: 'Items in this reply.' }),
  offset: Type.Integer({ description: 'Index of the first item of the next page.' }),
})

/** Shape of a list reply; `fields` may leave out any part of an item. */
export const listOf = <Item extends TSchema>(item: Item) =>
  Type.Object({
    items: Type.Array(Type.Unsafe<Pruned<Static<Item>>>(withoutRequired(item))),
    listmeta: ListMeta,
  })

/** A list reply. */
export interface Page<Item> {
  readonly items: Pruned<Item>[]
  readonly listmeta: Static<typeof ListMeta>
}

/** The result of a query. */
export interface Found<Row, Item> {
  /** Rows from the first item of the page on; one more than the limit if there are that many. */
  readonly rows: readonly Row[]
  /** Number of resources that match the filter. */
  readonly count: number
  /** Values of a row, one for each term of the order. */
  readonly valuesOf: (row: Row) => FieldValue[]
  readonly toItem: (row: Row) => Item
}

/** Builds the reply. It has a token only when there is a next page. */
export function makePage<Row, Item>(
  { limit, offset, fields, tokenAfter }: ListQuery,
  { rows, count, valuesOf, toItem }: Found<Row, Item>,
): Page<Item> {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const next = offset + shown.length
  const prune = (item: Item) => (fields ? pruneItem(item, fields) : (item as Pruned<Item>))
  return {
    items: shown.map((row) => prune(toItem(row))),
    listmeta: {
      continue: last !== undefined && rows.length > limit ? tokenAfter(valuesOf(last), next) : '',
      count,
      limit: shown.length,
      offset: next,
    },
  }
}

/** The same schema with all properties optional. */
const withoutRequired = (schema: TSchema) => relax(schema) as TSchema

function relax(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(relax)
  if (typeof schema !== 'object' || schema === null) return schema
  const parts = Object.entries(schema as Record<string, unknown>).filter(
    ([keyword]) => keyword !== 'required',
  )
  return Object.fromEntries(
    parts.map(([keyword, part]) => {
      if (keyword === 'properties') return [keyword, relaxEach(part as Record<string, unknown>)]
      return [keyword, ['items', 'anyOf', 'allOf'].includes(keyword) ? relax(part) : part]
    }),
  )
}

const relaxEach = (properties: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, relax(schema)]))
