import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { migrations as ofHost } from '../../../src/edgehostd/migrations.ts'
import { migrations as ofPlatform } from '../../../src/edgeplatformd/migrations.ts'
import { openDatabase } from '../../../src/store/database.ts'
import { newestSchema, stepsUpTo, type Migrations } from '../../../src/store/structure.ts'
import { captureLog } from '../../support/https-server.ts'

const programs = [
  ['edgehostd', ofHost],
  ['edgeplatformd', ofPlatform],
] as const satisfies readonly (readonly [string, Migrations])[]
// Each version of the schema that a release may have left, the newest too.
const versions = programs.flatMap(([program, migrations]) =>
  migrations.steps.map((_, index) => [program, migrations.first + index, migrations] as const),
)

interface Column {
  readonly name: string
  readonly type: string
}

function tablesOf(sql: DatabaseSync) {
  const tables = sql
    .prepare(
      "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
    )
    .all() as unknown as { name: string; sql: string }[]
  return tables.map(({ name, sql: declared }) => ({
    name,
    declared,
    columns: sql.prepare('SELECT name, type FROM pragma_table_info(?)').all(name) as unknown as Column[],
  }))
}

/** A value that the column accepts. */
function valueFor({ name, type }: Column, declared: string): string | number | Uint8Array {
  const [, choice] = new RegExp(`CHECK \\(${name} IN \\('([^']*)'`).exec(declared) ?? []
  if (choice !== undefined) return choice
  if (type === 'INTEGER') return 1
  // Columns of JSON are read by some migrations.
  return type === 'BLOB' ? Uint8Array.from([1, 2, 3]) : '["a"]'
}

describe.each(versions)('a database of %s with schema %i', (_program, version, migrations) => {
  it('has a row of every table after the migration as before it', () => {
    const folder = mkdtempSync(join(tmpdir(), 'edgehostd-migrations-'))
    try {
      const file = join(folder, 'a.db')
      const { log, texts } = captureLog()
      const old = openDatabase(file, log, { ...migrations, steps: stepsUpTo(migrations, version) })
      // Rows refer to rows of tables that come later; the check at the end finds one without the other.
      old.sql.exec('PRAGMA foreign_keys = OFF')
      const before = tablesOf(old.sql).map(({ name, declared, columns }) => {
        // A trigger may have filled a table that counts another one.
        if (old.sql.prepare(`SELECT 1 FROM ${name}`).get() === undefined) {
          const values = columns.map((column) => valueFor(column, declared))
          old.sql.prepare(`INSERT INTO ${name} VALUES (${columns.map(() => '?').join()})`).run(...values)
        }
        return { name, columns }
      })
      const rowOf = (sql: DatabaseSync, name: string, columns: readonly Column[]) =>
        sql.prepare(`SELECT ${columns.map((column) => column.name).join()} FROM ${name}`).all()
      const rows = before.map(({ name, columns }) => rowOf(old.sql, name, columns))
      old.close()

      const now = openDatabase(file, log, migrations)
      expect(now.sql.prepare('PRAGMA user_version').get()).toEqual({ user_version: newestSchema(migrations) })
      expect(before.map(({ name, columns }) => rowOf(now.sql, name, columns))).toEqual(rows)
      expect(now.sql.prepare('PRAGMA foreign_key_check').all()).toEqual([])
      expect(now.sql.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' })
      now.close()
      expect(texts()).toEqual([])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
