import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/** The size of the database, and whether it is intact. */
export interface DatabaseStatistics {
  readonly schema: number
  /** Size of the file, and of its write-ahead log. */
  readonly bytes: number
  readonly logBytes: number
  readonly pageBytes: number
  readonly pages: number
  readonly freePages: number
  /** `ok`, or the problems found. */
  readonly check: readonly string[]
  /** Tables by name: rows, and bytes including the indexes. */
  readonly tables: Readonly<Record<string, { readonly rows: number; readonly bytes: number }>>
}

/**
 * Reads a database without changing it, whether its daemon runs or not.
 * @throws Error when the file is missing or cannot be read
 */
export function readDatabase<T>(file: string, read: (sql: DatabaseSync) => T): T {
  const sql = new DatabaseSync(file, { readOnly: true, timeout: 2_000 })
  try {
    return read(sql)
  } finally {
    sql.close()
  }
}

/** Reads the statistics of a database. @throws Error as `readDatabase` */
export function readStatistics(file: string): DatabaseStatistics {
  return readDatabase(file, (sql) => {
    const pragma = (name: string) => Object.values(sql.prepare(`PRAGMA ${name}`).get() ?? {})[0] as number
    const sizes = sql
      .prepare(
        `SELECT schema.tbl_name AS name, SUM(pages.pgsize) AS bytes
         FROM dbstat AS pages JOIN sqlite_schema AS schema ON schema.name = pages.name
         GROUP BY schema.tbl_name ORDER BY schema.tbl_name`,
      )
      .all() as { name: string; bytes: number }[]
    const rows = (name: string) =>
      (sql.prepare(`SELECT COUNT(*) AS rows FROM "${name}"`).get() as { rows: number }).rows
    const problems = sql.prepare('PRAGMA quick_check(20)').all() as { quick_check: string }[]
    return {
      schema: pragma('user_version'),
      bytes: sizeOf(file),
      logBytes: sizeOf(`${file}-wal`),
      pageBytes: pragma('page_size'),
      pages: pragma('page_count'),
      freePages: pragma('freelist_count'),
      check: problems.map(({ quick_check }) => quick_check),
      tables: Object.fromEntries(sizes.map(({ name, bytes }) => [name, { rows: rows(name), bytes }])),
    }
  })
}

const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0
