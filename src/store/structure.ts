import { DatabaseSync } from 'node:sqlite'

/** The schema of a program: the step that makes it, and each later change, applied in order and never edited once released. */
export interface Migrations {
  /** Number of the schema that the first step makes; a database of a lower one is refused. Each other step adds one. */
  readonly first: number
  readonly steps: readonly string[]
  /** Package to install first where the database has a lower number. */
  readonly install: string
}

/** The number of the schema that all steps make. */
export const newestSchema = ({ first, steps }: Migrations): number => first + steps.length - 1
/** The steps that make the schema of a number. */
export const stepsUpTo = ({ first, steps }: Migrations, version: number): readonly string[] =>
  steps.slice(0, Math.max(0, version - first + 1))

/** Each object of a database, as `table session`, and its parts in the same form; without objects of SQLite itself. */
export type Structure = ReadonlyMap<string, string>

/** The structure that a schema makes, and the names of all objects that any of its versions has. */
export interface KnownStructure {
  readonly expected: Structure
  readonly ours: ReadonlySet<string>
}

// Statistics of ANALYZE and numbers of AUTOINCREMENT come and go.
const isOfSqlite = (name: string) => name.startsWith('sqlite_') && !name.startsWith('sqlite_autoindex_')

/**
 * Reads the tables with their columns and foreign keys, the indexes with their columns, and the triggers by name. Not the SQL text: SQLite
 * writes it again at a change, and each version in its own way.
 * @throws the error of SQLite where the schema of the file cannot be read
 */
export function structureOf(sql: DatabaseSync): Structure {
  const found = new Map<string, string[]>()
  const add = (key: string, part: unknown) => {
    const parts = found.get(key) ?? []
    parts.push(JSON.stringify(part))
    found.set(key, parts)
  }
  const all = (text: string) => sql.prepare(text).all() as Record<string, string | number | null>[]
  for (const { name, type, wr, strict } of all("SELECT * FROM pragma_table_list WHERE schema = 'main'"))
    add(`table ${name}`, [type, wr, strict])
  for (const row of all(
    `SELECT list.name AS of, item.name, item.type, item."notnull", item.dflt_value, item.pk, item.hidden
     FROM pragma_table_list AS list, pragma_table_xinfo(list.name) AS item WHERE list.schema = 'main' ORDER BY list.name, item.cid`,
  ))
    add(`table ${row.of}`, [row.name, row.type, row.notnull, row.dflt_value, row.pk, row.hidden])
  for (const row of all(
    `SELECT list.name AS of, item."from", item."table", item."to", item.on_update, item.on_delete
     FROM pragma_table_list AS list, pragma_foreign_key_list(list.name) AS item WHERE list.schema = 'main' ORDER BY list.name, item.id, item.seq`,
  ))
    add(`table ${row.of}`, [row.from, row.table, row.to, row.on_update, row.on_delete])
  for (const row of all(
    `SELECT list.name AS of, item.name AS name, item."unique" AS isUnique, item.partial, part.name AS "column", part."desc", part.coll, part.key
     FROM pragma_table_list AS list, pragma_index_list(list.name) AS item, pragma_index_xinfo(item.name) AS part
     WHERE list.schema = 'main' ORDER BY list.name, item.name, part.seqno`,
  ))
    add(`index ${row.name}`, [row.of, row.isUnique, row.partial, row.column, row.desc, row.coll, row.key])
  for (const { name, tbl_name } of all("SELECT name, tbl_name FROM sqlite_schema WHERE type = 'trigger'"))
    add(`trigger ${name}`, tbl_name)
  return new Map(
    [...found]
      .filter(([key]) => !isOfSqlite(key.slice(key.indexOf(' ') + 1)))
      .map(([key, parts]) => [key, parts.join(' ')]),
  )
}

// A database that is moved aside is opened a second time, and tests open thousands.
const known = new WeakMap<Migrations, Map<number, KnownStructure>>()

/**
 * The structure that the migrations up to a number make, tried in memory.
 * @param version number of the schema; for one that they do not make, nothing is expected
 */
export function structureAt(migrations: Migrations, version: number): KnownStructure {
  const tried = known.get(migrations) ?? new Map<number, KnownStructure>()
  known.set(migrations, tried)
  const made = tried.get(version) ?? tryInMemory(migrations, version)
  tried.set(version, made)
  return made
}

function tryInMemory({ first, steps }: Migrations, version: number): KnownStructure {
  const sql = new DatabaseSync(':memory:')
  try {
    const ours = new Set<string>()
    let expected: Structure = new Map()
    const names = sql.prepare("SELECT type || ' ' || name AS name FROM sqlite_schema")
    for (const [index, statements] of steps.entries()) {
      try {
        sql.exec(statements)
      } catch (error) {
        // The migration of the file reports it.
        if (first + index > version) break
        throw error
      }
      if (first + index === version) expected = structureOf(sql)
      for (const { name } of names.all()) ours.add(String(name))
    }
    return { expected, ours }
  } finally {
    sql.close()
  }
}

/**
 * Missing or differing parts of a structure; empty where there are none. Tables and indexes of others are no difference, as an
 * administrator may have added them; an object of ours that belongs to another version is one.
 */
export function differencesOf(found: Structure, { expected, ours }: KnownStructure): string[] {
  return [
    ...[...expected].flatMap(([key, made]) => {
      const present = found.get(key)
      if (present === undefined) return [`the ${key} is missing`]
      return present === made ? [] : [`the ${key} is not as it was made`]
    }),
    ...[...found.keys()]
      .filter((key) => !expected.has(key) && ours.has(key))
      .map((key) => `the ${key} does not belong to this schema`),
  ]
}

/** The expected tables that a structure lacks. */
export const missingTables = (found: Structure, { expected }: KnownStructure): string[] =>
  [...expected.keys()].filter((key) => key.startsWith('table ') && !found.has(key))
