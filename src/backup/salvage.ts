import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { BackupRefused } from './refused.ts'

/** What was read of a table. */
export interface Salvaged {
  readonly table: string
  readonly rows: number
  /** Whether all of it could be read. */
  readonly isWhole: boolean
}

type Row = Record<string, SQLInputValue>

// Where a part of a table cannot be read, reading begins anew at these: keys are UUIDs or other text, or numbers.
const prefixes = Array.from({ length: 256 }, (_, index) => index.toString(16).padStart(2, '0'))

/**
 * Copies every row that can be reached in a damaged database into a new one of the same schema. A table is read from both of its ends, and
 * where a part of it cannot be read, from keys behind that part.
 * @param from changed by the reading
 * @throws BackupRefused where its list of tables cannot be read
 */
export function salvage(from: string, to: string, migrations: readonly string[]): Salvaged[] {
  const source = new DatabaseSync(from, { enableForeignKeyConstraints: false })
  const target = new DatabaseSync(to, { enableForeignKeyConstraints: false })
  try {
    const schema = schemaOf(source, migrations.length)
    target.exec(`PRAGMA synchronous = OFF; BEGIN; ${migrations.slice(0, schema).join(';')}`)
    const found = tablesOf(target).map((table) => copyTable(source, target, table))
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

function schemaOf(source: DatabaseSync, newest: number): number {
  try {
    source.enableDefensive(false)
    // An entry that cannot be parsed does not hide the others.
    source.exec('PRAGMA writable_schema = ON')
    const { user_version: version } = source.prepare('PRAGMA user_version').get() as { user_version: number }
    source.prepare('SELECT count(*) FROM sqlite_schema').get()
    return version >= 1 && version <= newest ? version : newest
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

function copyTable(source: DatabaseSync, target: DatabaseSync, table: string): Salvaged {
  // Triggers count the rows that are inserted.
  if (table.endsWith('_count') && tablesOf(target).includes(table.slice(0, -'_count'.length)))
    return { table, rows: 0, isWhole: true }
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
  const key = columns
    .filter(({ pk }) => Number(pk) > 0)
    .sort((one, two) => Number(one.pk) - Number(two.pk))
    .map(({ name }) => `"${String(name)}"`)[0]
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
  const by = key ?? 'rowid'
  if (!readAll('', `ORDER BY ${by}`, [])) {
    isWhole = false
    readAll('', `ORDER BY ${by} DESC`, [])
    for (const start of startsOf(source, table, by))
      readAll(`WHERE ${by} >= ?`, `ORDER BY ${by} LIMIT 5000`, [start])
  }
  const { rows } = target.prepare(`SELECT count(*) AS rows FROM "${table}"`).get() as { rows: number }
  return { table, rows, isWhole }
}

/** Keys at which reading may begin: those that an index can still tell, and the beginnings of UUIDs. */
function startsOf(source: DatabaseSync, table: string, by: string): SQLInputValue[] {
  try {
    const { least, most } = source
      .prepare(
        `SELECT (SELECT min(${by}) FROM "${table}") AS least, (SELECT max(${by}) FROM "${table}") AS most`,
      )
      .get() as { least: SQLInputValue; most: SQLInputValue }
    if (typeof least !== 'number' || typeof most !== 'number') return prefixes
    const step = Math.max(1, Math.ceil((most - least) / 2_000))
    return Array.from({ length: Math.ceil((most - least) / step) }, (_, index) => least + index * step)
  } catch {
    return prefixes
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
