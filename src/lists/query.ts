import { Type, type Static } from 'typebox'
import { longestToken, type ContinueTokens } from './continue-token.ts'
import { parseFields, type FieldTree } from './fields.ts'
import { parseFilter, type Filter, defaultOrder, parseOrder } from './filter.ts'
import {
  filterPaths,
  orderPaths,
  refuse,
  type FieldValue,
  type ListResource,
  type OrderTerm,
} from './resource.ts'

/** Default and maximum of `limit`. */
export const pageSize = 50

/**
 * Schema of the query parameters of a list. A route with further parameters spreads these `properties` into its own.
 */
export const listParameters = (resource: ListResource) =>
  Type.Object({
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: pageSize, default: pageSize, description: 'Items in the reply.' }),
    ),
    offset: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        default: 0,
        description: 'Index of the first item; ignored with continue.',
      }),
    ),
    continue: Type.Optional(
      Type.String({
        maxLength: longestToken,
        description: 'The listmeta.continue of the previous page; filters and orderBy must be the same.',
      }),
    ),
    fields: Type.Optional(
      Type.String({
        maxLength: 2_000,
        description:
          'Paths to keep of each item, with commas between: <path>,<path>.' +
          withoutFields(Object.keys(resource.heavy ?? {})),
      }),
    ),
    filters: Type.Optional(
      Type.String({
        maxLength: 2_000,
        description:
          '<path>=<value>, with AND or OR between; AND binds tighter, a value may be in double quotes. ' +
          `Paths: ${filterPaths(resource).join(', ')}.`,
      }),
    ),
    orderBy: Type.Optional(
      Type.String({
        maxLength: 500,
        description: `<path>=1 or <path>=-1, with commas between. Paths: ${orderPaths(resource).join(', ')}.`,
      }),
    ),
  })

const withoutFields = (heavy: readonly string[]) =>
  heavy.length === 0
    ? ''
    : ` Without it, an item has all but ${heavy.join(', ')}, which may be long: name those that are needed.`

/** The parameters after schema validation; empty text means not set. */
export type ListParameters = Static<ReturnType<typeof listParameters>>

/** Query of a client. */
export interface ListQuery {
  /** Items per page. */
  readonly limit: number
  /** Index of the first item of this page. With `after` it is only reported; no rows are skipped. */
  readonly offset: number
  readonly filter: Filter
  /** Total order: its last term is the key of the resource. */
  readonly order: readonly OrderTerm[]
  /** Values of the item after which the page begins, one for each term of the order. */
  readonly after: readonly FieldValue[] | undefined
  /** The fields to keep of each item; undefined keeps all but those that are heavy. */
  readonly fields: FieldTree | undefined
  /** Token of the page that starts after an item; `offset` is the index of the first item of that page. */
  tokenAfter(values: readonly FieldValue[], offset: number): string
}

export interface ListQueryOptions {
  readonly tokens: ContinueTokens
  /** Other parameters that select items: a token is valid only with the same values. */
  readonly bound?: readonly (string | number | undefined)[]
}

/** @throws AppError BadRequest naming the parameter in `details.field` */
export function parseListQuery(
  parameters: ListParameters,
  resource: ListResource,
  { tokens, bound = [] }: ListQueryOptions,
): ListQuery {
  const { limit = pageSize, offset = 0, continue: token, fields, filters, orderBy } = parameters
  const filter = filters ? parseFilter(filters, resource) : []
  const order = orderBy ? parseOrder(orderBy, resource) : defaultOrder(resource)
  // Two spellings of one query are the same query, and so is the query with another page size.
  const identity = JSON.stringify([
    resource.name,
    filter.map((all) => all.map(({ path, value }) => [path, value])),
    order.map(({ path, direction }) => [path, direction]),
    bound.map((value) => value ?? null),
  ])
  const position = token ? tokens.parse(identity, token) : undefined
  if (token && !position)
    throw refuse('continue', 'continue is not a token of this query; start again without it')
  return {
    limit,
    offset: position?.offset ?? offset,
    filter,
    order,
    after: position?.values,
    fields: fields ? parseFields(fields, resource.item) : undefined,
    tokenAfter: (values, next) => tokens.make(identity, { values, offset: next }),
  }
}
