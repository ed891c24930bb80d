import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { newestSchema, stepsUpTo, type Migrations } from '../store/structure.ts'
import { BackupRefused } from './refused.ts'

/** Salvage result of a table. */
export interface Salvaged {
  readonly table: string
  readonly rows: number
  /** Whether all of it could be read. */
  readonly isWhole: boolean
}

type Row = Record<string, SQLInputValue>

// Where a part of a table cannot be read, reading begins anew at these: keys without rowids are UUIDs or other text.
const prefixes = Array.from({ length: 256 }, (_, index) => index.toString(16).padStart(2, '0'))

/**
 * Copies every row that can be reached in a damaged database into a new one of the same schema. A table is read from both of its ends, and
 * where a part of it cannot be read, in pieces, each of them from both of its ends.
 * @param from changed by the reading
 * @throws BackupRefused where its list of tables cannot be read
 */
export function salvage(from: string, to: string, migrations: Migrations): Salvaged[] {
  const source = new DatabaseSync(from, { enableForeignKeyConstraints: false })
  const target = new DatabaseSync(to, { enableForeignKeyConstraints: false })
  try {
    const schema = schemaOf(source, migrations)
    target.exec(`PRAGMA synchronous = OFF; BEGIN; ${stepsUpTo(migrations, schema).join(';')}`)
    const counted = countedTables(target)
    const found = tablesOf(target).map((table) =>
      counted.has(table) ? { table, rows: 0, isWhole: true } : copyTable(source, target, table),
    )
    dropOrphans(target)
    target.exec(`PRAGMA user_version = ${schema}; COMMIT`)
    if (found.every(({ rows }) => rows === 0))
      throw new BackupRefused('no row of the database can be read: restore a backup')
    return found
  } finally {
    source.close()
    target.close()
  }
}

function schemaOf(source: DatabaseSync, migrations: Migrations): number {
  const newest = newestSchema(migrations)
  try {
    source.enableDefensive(false)
    // An entry that cannot be parsed does not hide the others.
    source.exec('PRAGMA writable_schema = ON')
    const { user_version: version } = source.prepare('PRAGMA user_version').get() as { user_version: number }
    source.prepare('SELECT count(*) FROM sqlite_schema').get()
    return version >= migrations.first && version <= newest ? version : newest
  } catch (error) {
    throw new BackupRefused(
      `the list of tables of the database cannot be read (${(error as Error).message}): nothing of it can be recovered; restore a backup`,
    )
  }
}

const tablesOf = (target: DatabaseSync): string[] =>
  target
    .prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
    )
    .all()
    .map(({ name }) => String(name))

/** The tables that triggers fill with sums of the inserted rows. */
const countedTables = (target: DatabaseSync): ReadonlySet<string> =>
  new Set(
    target
      .prepare("SELECT sql FROM sqlite_schema WHERE type = 'trigger'")
      .all()
      .flatMap(({ sql }) => [...String(sql).matchAll(/INSERT INTO (\w+)/g)].map(([, table = '']) => table)),
  )

function copyTable(source: DatabaseSync, target: DatabaseSync, table: string): Salvaged {
  const columns = target.prepare(`SELECT name, pk FROM pragma_table_xinfo(?) WHERE hidden = 0`).all(table)
  const names = columns.map(({ name }) => `"${String(name)}"`).join(', ')
  const insert = target.prepare(
    `INSERT OR IGNORE INTO "${table}" (${names}) VALUES (${columns.map(() => '?').join(', ')})`,
  )
  const insertRow = (row: Row) => {
    try {
      insert.run(...columns.map(({ name }) => row[String(name)] ?? null))
    } catch {
      // A row that the schema does not accept is damage too.
      isWhole = false
    }
  }
  const [key = 'rowid'] = columns
    .filter(({ pk }) => Number(pk) > 0)
    .sort((one, two) => Number(one.pk) - Number(two.pk))
    .map(({ name }) => `"${String(name)}"`)
  // In the order of its b-tree: any other has to be sorted, which reads all of the table before the first row.
  const by = hasRowid(target, table) ? 'rowid' : key
  let isWhole = true
  /** @returns whether it came to the end */
  const readAll = (where: string, order: string, values: SQLInputValue[]): boolean => {
    try {
      for (const row of source
        .prepare(`SELECT ${names} FROM "${table}" NOT INDEXED ${where} ${order}`)
        .iterate(...values))
        insertRow(row)
      return true
    } catch {
      return false
    }
  }
  target.exec(`DELETE FROM "${table}"`)
  if (!readAll('', `ORDER BY ${by}`, [])) {
    isWhole = false
    readAll('', `ORDER BY ${by} DESC`, [])
    const starts = by === 'rowid' ? rowidsOf(source, table) : prefixes
    starts.forEach((start, index) => {
      const next = starts[index + 1]
      const part = next === undefined ? `WHERE ${by} >= ?` : `WHERE ${by} >= ? AND ${by} < ?`
      const values = next === undefined ? [start] : [start, next]
      if (!readAll(part, `ORDER BY ${by}`, values)) readAll(part, `ORDER BY ${by} DESC`, values)
    })
  }
  const { rows } = target.prepare(`SELECT count(*) AS rows FROM "${table}"`).get() as { rows: number }
  return { table, rows, isWhole }
}

const hasRowid = (target: DatabaseSync, table: string): boolean =>
  target.prepare('SELECT wr FROM pragma_table_list(?)').get(table)?.wr === 0

/** Rowids at which reading may begin, between the ones still readable in the table or the index of its key. */
function rowidsOf(source: DatabaseSync, table: string): number[] {
  const { least, most } = boundsOf(source, `"${table}"`) ??
    boundsOf(source, `"${table}" INDEXED BY "sqlite_autoindex_${table}_1"`) ?? { least: 0, most: 10_000_000 }
  const step = Math.max(1, Math.ceil((most - least) / 2_000))
  return Array.from({ length: Math.ceil((most - least) / step) }, (_, index) => least + index * step)
}

function boundsOf(
  source: DatabaseSync,
  from: string,
): { readonly least: number; readonly most: number } | undefined {
  try {
    const { least, most } = source
      .prepare(`SELECT (SELECT min(rowid) FROM ${from}) AS least, (SELECT max(rowid) FROM ${from}) AS most`)
      .get() as { least: number | null; most: number | null }
    return least === null || most === null ? undefined : { least, most }
  } catch {
    return undefined
  }
}

/** Rows that refer to rows which are lost: the daemon relies on what they refer to. */
function dropOrphans(target: DatabaseSync): void {
  for (;;) {
    const orphans = target.prepare('PRAGMA foreign_key_check').all()
    if (orphans.length === 0) return
    for (const { table, rowid } of orphans)
      if (rowid !== null) target.prepare(`DELETE FROM "${String(table)}" WHERE rowid = ?`).run(Number(rowid))
    if (orphans.some(({ rowid }) => rowid === null)) {
      dropWithoutRowid(target)
      return
    }
  }
}

/** A table without rowids names no row in the check. */
function dropWithoutRowid(target: DatabaseSync): void {
  const references = target
    .prepare(
      `SELECT list.name AS of, part."from" AS "column", part."table" AS "to", part."to" AS other
       FROM pragma_table_list AS list, pragma_foreign_key_list(list.name) AS part WHERE list.schema = 'main'`,
    )
    .all()
  for (const { of, column, to, other } of references) {
    const key =
      other ?? target.prepare('SELECT name FROM pragma_table_xinfo(?) WHERE pk = 1').get(String(to))?.name
    target.exec(
      `DELETE FROM "${String(of)}" WHERE "${String(column)}" NOT IN (SELECT "${String(key)}" FROM "${String(to)}")`,
    )
  }
}
