import { namesPath } from './fields.ts'
import type { Condition, Filter } from './filter.ts'
import type { ListQuery } from './query.ts'
import { fieldAt, type FieldValue, type ListField, type ListResource, type OrderTerm } from './resource.ts'

/** A field that is a column: NOT NULL, in a STRICT table, with the collation BINARY. */
export interface SqlField extends ListField {
  /** A plain name from the code; text from clients never becomes part of a statement. */
  readonly column: string
  /** For a column that is a text of many values: the part of the text that means a value. The filter then looks for this part. */
  readonly part?: (value: FieldValue) => string
}

/** A field that is a column with a text. */
export const textColumn = (column: string): SqlField => ({ type: 'text', column })

/** A statement, or a part of one, and the values for its `?`. */
export interface SqlText {
  readonly sql: string
  readonly values: readonly FieldValue[]
}

/**
 * Indexes that begin with the columns of the condition of a room. SQLite knows how many values a column has, not how many rows have one
 * of them, so a list chooses among these indexes itself.
 */
export interface SqlIndexes {
  /** Has every column that filters often name, after the default order: for filters that no other index serves. */
  readonly whole: string
  /** By column: the index in which this column follows, then the default order, then the other columns of this record and of `part`s. */
  readonly byColumn: Readonly<Record<string, string>>
  /** Columns with a value of their own in each row: SQLite finds the row by itself. */
  readonly unique: readonly string[]
  /** By column: the index in which this column follows, and nothing else. Hardly ever do many rows have one value. */
  readonly narrow: Readonly<Record<string, string>>
}

/** The table and columns of a resource; all text comes from the code. */
export interface SqlSource {
  /** The text after FROM. */
  readonly table: string
  /** The text after SELECT: `<column>` or `<column> AS <name>`, separated by commas. */
  readonly columns: string
}

/** The statements of one list. `condition` is a further condition on the rows that the room sets. */
export interface Statements {
  /** Reads one row more than the page holds, to find out whether there is a next page. */
  page(query: ListQuery, condition?: SqlText, index?: string): SqlText
  /** Counts the rows that match the filter, as the one column `count`. */
  count(query: ListQuery, condition?: SqlText, index?: string): SqlText
  /** Values of a row that `page` has read, one for each term of the order. */
  valuesOf(query: ListQuery, row: SqlRow): FieldValue[]
}

/** A row as SQLite returns it, by column name. */
export type SqlRow = Readonly<Record<string, unknown>>

export function createStatements(
  resource: ListResource<SqlField>,
  { table, columns }: SqlSource,
): Statements {
  const names = columnNames(columns)
  const selected = columns.split(',').map((each) => each.trim())
  const heavy = Object.entries(resource.heavy ?? {}).map(([path, part]) => ({
    path: path.split('.'),
    ...part,
  }))
  for (const { column } of heavy)
    if (!selected.includes(column)) throw new Error(`the list of ${resource.name} has no column ${column}`)

  /** The text after SELECT: heavy parts that were not requested do not even reach the makers of the items. */
  function columnsFor({ fields }: ListQuery): string {
    const left = Map.groupBy(
      heavy.filter(({ path }) => !fields || !namesPath(fields, path)),
      ({ column }) => column,
    )
    const light = (column: string) => {
      const paths = left.get(column)?.map(({ at }) => `, '${at}'`)
      return paths ? `json_remove(${column}${paths.join('')}) AS ${column}` : column
    }
    return left.size === 0 ? columns : selected.map(light).join(', ')
  }

  const from = (index: string | undefined) => (index === undefined ? table : `${table} INDEXED BY ${index}`)
  const columnOf = ({ path }: OrderTerm) => fieldAt(resource, path).column
  return {
    page(query, condition, index) {
      const { filter, order, after, limit, offset } = query
      const terms = order.map((term) => ({ column: columnOf(term), isDescending: term.direction === -1 }))
      const where = conjunction([
        condition,
        compileFilter(filter, resource),
        after && compileAfter(terms, after),
      ])
      const missing = terms.filter(({ column }) => !names.has(column)).map(({ column }) => `, ${column}`)
      const by = terms.map(({ column, isDescending }) => `${column} ${isDescending ? 'DESC' : 'ASC'}`)
      const skipped = after === undefined && offset > 0
      return {
        sql:
          `SELECT ${columnsFor(query)}${missing.join('')} FROM ${from(index)}${where.sql} ORDER BY ${by.join(', ')} LIMIT ?` +
          (skipped ? ' OFFSET ?' : ''),
        values: [...where.values, limit + 1, ...(skipped ? [offset] : [])],
      }
    },

    count({ filter }, condition, index) {
      const where = conjunction([condition, compileFilter(filter, resource)])
      return { sql: `SELECT count(*) AS count FROM ${from(index)}${where.sql}`, values: where.values }
    },

    valuesOf: ({ order }, row) =>
      order.map((term) => row[names.get(columnOf(term)) ?? columnOf(term)] as FieldValue),
  }
}

/** The column behind each name in `columns`. */
function columnNames(columns: string): ReadonlyMap<string, string> {
  return new Map(
    columns.split(',').map((each) => {
      const [column = '', , name = column] = each.trim().split(/\s+/)
      return [column, name]
    }),
  )
}

function conjunction(parts: readonly (SqlText | undefined)[]): SqlText {
  const present = parts.filter((part) => part !== undefined)
  return {
    sql: present.length === 0 ? '' : ` WHERE ${present.map(({ sql }) => `(${sql})`).join(' AND ')}`,
    values: present.flatMap(({ values }) => values),
  }
}

function compileFilter(filter: Filter, resource: ListResource<SqlField>): SqlText | undefined {
  if (filter.length === 0) return undefined
  // Alternatives do not use their indexes: where one alternative matches most rows, that takes a hundred times as long
  // as a scan of all rows (sqlite.org/optoverview.html, 3 and 6).
  const sign = filter.length > 1 ? '+' : ''
  const compare = ({ path }: Condition) => {
    const { column, part } = fieldAt(resource, path)
    return part ? `instr(${column}, ?) > 0` : `${sign}${column} = ?`
  }
  const valueOf = ({ path, value }: Condition) => fieldAt(resource, path).part?.(value) ?? value
  return {
    sql: filter.map((all) => all.map(compare).join(' AND ')).join(' OR '),
    values: filter.flatMap((all) => all.map(valueOf)),
  }
}

interface Term {
  readonly column: string
  readonly isDescending: boolean
}

/**
 * The condition for rows after a position. Where all terms have the same direction it is a row value, since an index
 * can seek to one (sqlite.org/rowvalue.html, section 3.1). Otherwise it compares term by term, with a bound on the
 * first term to seek by.
 */
function compileAfter(terms: readonly Term[], after: readonly FieldValue[]): SqlText {
  const [first] = terms
  if (!first) throw new Error('an order has at least the key')
  const beyond = ({ isDescending }: Term) => (isDescending ? '<' : '>')
  if (terms.every(({ isDescending }) => isDescending === first.isDescending)) {
    const names = terms.map(({ column }) => column).join(', ')
    const marks = terms.map(() => '?').join(', ')
    return { sql: `(${names}) ${beyond(first)} (${marks})`, values: after }
  }
  const steps = terms.map((term, index) => {
    const equal = terms.slice(0, index).map(({ column }) => `${column} = ?`)
    return [...equal, `${term.column} ${beyond(term)} ?`].join(' AND ')
  })
  return {
    sql: `${first.column} ${beyond(first)}= ? AND (${steps.map((step) => `(${step})`).join(' OR ')})`,
    values: [...after.slice(0, 1), ...terms.flatMap((_term, index) => after.slice(0, index + 1))],
  }
}
