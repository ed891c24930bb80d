// A room declares its list once (`lists/resource.ts`): the indexed paths, the key, the order without `orderBy`. The route spreads `listParameters`
// into its query, `parseListQuery` parses it, and `listInMemory` or `createSqlList` answers, both by the same rules; a test with random queries
// compares the two while rows are added and removed.
//
// - A continue token contains the values of the last item, not a row number, and is signed together with its query, so it cannot be used with
//   another query. A client sees an item exactly once if its order fields do not change.
// - A page in the default order is read on the event loop, one of a list at a time, with as long a rest after a long one: the last page of a
//   million rows takes as long as the first. Filters, other orders, far offsets and their counts may have to read every row; `store/reader.ts`
//   reads them in a thread with a read-only connection. The thread starts with the first such query and ends a minute after the last. Eight queries
//   may wait, on the platform 64, equal ones share one place; a query that waits or takes longer than 5 s gets a 503. SQLite cannot be interrupted
//   from outside its thread: until an abandoned query has ended, the others wait or are refused.
// - Parts of an item that may be long (`heavy` of the list) are removed by the statement (`json_remove`), unless `fields` asks for them: the
//   daemon does not parse the parts that a page lacks. For fifty hosts with 130 kB of facts each this takes a tenth of the time of whole facts.
// - The room of a table keeps its total count in memory. Lists of the platform are of one scope: triggers keep the count of each scope, and a
//   condition says it (`SqlCondition`). A list may name its indexes (`SqlIndexes`): it counts up to 5,000 entries for each condition of a filter,
//   where one is rare only a quarter of that for the next, uses the index of the rarest, and reads it on the event loop where there are fewer.

import type { TSchema } from 'typebox'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'

/**
 * Type of a field. A `time` is RFC 3339 on the wire and milliseconds since 1970 internally, a `boolean` is 1 or 0
 * internally.
 */
export type FieldType = 'text' | 'integer' | 'boolean' | 'time'

/** A value used for comparison. Text is compared by its UTF-8 bytes, as in SQLite. */
export type FieldValue = string | number

/**
 * A field that a resource declares as indexed: clients may filter by it, and order by it unless `isOrdered` is false.
 */
export interface ListField {
  readonly type: FieldType
  /** False for text that may be longer than 256 bytes, since the token contains the values of the ordered fields. */
  readonly isOrdered?: boolean
}

export interface OrderTerm {
  readonly path: string
  /** 1 ascending, -1 descending. */
  readonly direction: 1 | -1
}

/** The fields of one prefix. */
export interface FieldFamily<Field extends ListField = ListField> {
  /** For example `metadata.labels.`. */
  readonly prefix: string
  /** Placeholder of the last part in messages: `KEY`. */
  readonly placeholder: string
  /** The field of a last part; its characters are letters, digits, `.`, `_`, `-` and `/`. */
  readonly field: (last: string) => Field
}

/** The characters of the last part of a path in a family. */
export const familyPart = '[A-Za-z0-9._/-]{1,317}'
const isFamilyPart = new RegExp(`^${familyPart}$`)

/** Storage of a part of an item; all text comes from the code. */
export interface HeavyPart {
  /** With JSON. */
  readonly column: string
  /** The part of that JSON, `$.device.disks` (sqlite.org/json1.html, 3.3). The maker of the item accepts its absence. */
  readonly at: string
}

/** Names that the queries of one list may use. Every item has a value for every field. */
export interface ListResource<Field extends ListField = ListField> {
  /** Name of the list; a token of one list is refused by another. */
  readonly name: string
  /** Fields by their path on the wire, for example `metadata.name`. */
  readonly fields: Readonly<Record<string, Field>>
  /** Fields whose last part clients choose, for example the key of a label. They can be filtered by, not ordered by. */
  readonly families?: readonly FieldFamily<Field>[]
  /** Path of a field that is unique among the items; it is the last term of every order. */
  readonly key: string
  /**
   * The order without `orderBy`; by default the key alone. Choose fields that do not change: if a field changes while a
   * client pages, the client sees that item twice or not at all.
   */
  readonly defaultOrder?: readonly OrderTerm[]
  /**
   * Parts of an item that may be long, by their paths: a page has them only where `fields` names them, a part of them, or a parent of them;
   * otherwise the database does not return them. For lists of rows.
   */
  readonly heavy?: Readonly<Record<string, HeavyPart>>
  /** Schema of an item. With it, `fields` that do not exist are refused. */
  readonly item?: TSchema
}

/** The field at a path that a client sent; undefined when it is not declared. */
export function findField<Field extends ListField>(
  resource: ListResource<Field>,
  path: string,
): Field | undefined {
  if (Object.hasOwn(resource.fields, path)) return resource.fields[path]
  const family = resource.families?.find(({ prefix }) => path.startsWith(prefix))
  const last = family && path.slice(family.prefix.length)
  return last !== undefined && isFamilyPart.test(last) ? family?.field(last) : undefined
}

/** The field at a path that has been checked. */
export function fieldAt<Field extends ListField>(resource: ListResource<Field>, path: string): Field {
  const field = findField(resource, path)
  if (!field) throw new Error(`${resource.name} has no field ${path}`)
  return field
}

/** Paths that `filters` may name, of families with their placeholder. */
export const filterPaths = ({ fields, families = [] }: ListResource): string[] => [
  ...Object.keys(fields),
  ...families.map(({ prefix, placeholder }) => prefix + placeholder),
]

/** Paths that `orderBy` may name. */
export const orderPaths = (resource: ListResource): string[] =>
  Object.keys(resource.fields).filter((path) => resource.fields[path]?.isOrdered !== false)

/** The 400 error for a parameter of the query. */
export const refuse = (
  parameter: string,
  message: string,
  details: Readonly<Record<string, unknown>> = {},
): AppError => new AppError(generalErrors.BadRequest, message, { details: { field: parameter, ...details } })
