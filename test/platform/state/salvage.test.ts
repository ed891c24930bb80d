import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { salvage } from '../../../src/backup/salvage.ts'
import { migrations } from '../../../src/edgeplatformd/migrations.ts'
import { newestSchema } from '../../../src/store/structure.ts'

const hosts = 300
const events = 3_000
let folder: string
let from: string
let to: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'edgehostd-salvage-'))
  from = join(folder, 'damaged.db')
  to = join(folder, 'new.db')
  const sql = new DatabaseSync(from)
  sql.exec(`${migrations.steps.join(';')}; PRAGMA user_version = ${newestSchema(migrations)}; BEGIN`)
  for (let index = 0; index < hosts; index += 1) fill(sql, 'edge_host', index)
  for (let index = 0; index < events; index += 1) fill(sql, 'event', index)
  sql.exec('COMMIT')
  sql.close()
})
afterEach(() => rmSync(folder, { recursive: true }))

/** Inserts a row of a table, whatever its columns are. */
function fill(sql: DatabaseSync, table: string, index: number): void {
  const columns = sql.prepare('SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden = 0').all(table)
  const values = columns.map(({ name, type }) => {
    if (name === 'edge_host_uid' || name === 'project_uid') return 'one'
    if (name === 'reported') return JSON.stringify({ device: { name: 'x'.repeat(900) } })
    if (name === 'labels' || name === 'annotations') return '{}'
    return type === 'TEXT' ? `${String(name)} ${index}` : index + 1
  })
  const places = columns.map(() => '?').join(', ')
  const names = columns.map(({ name }) => String(name)).join(', ')
  sql.prepare(`INSERT INTO ${table} (${names}) VALUES (${places})`).run(...values)
}

/** Overwrites leaves of the b-tree of a table, by their place in it. */
function damage(table: string, ...places: readonly number[]): void {
  const sql = new DatabaseSync(from)
  const pages = sql
    .prepare("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path")
    .all(table)
  sql.close()
  const bytes = readFileSync(from)
  for (const place of places) {
    const page = Number(pages.at(place)?.pageno)
    bytes.fill(0xa5, (page - 1) * 4_096, page * 4_096)
  }
  writeFileSync(from, bytes)
}

function count(text: string): number {
  const sql = new DatabaseSync(to)
  const { found } = sql.prepare(text).get() as { found: number }
  sql.close()
  return found
}

const rowsOf = (table: string) => salvage(from, to, migrations).find((found) => found.table === table)

it.each([
  ['one of its pages is', [20]],
  ['both of its ends are', [0, -1]],
  ['pages in several places are', [0, 9, 10, 30, -1]],
])('hosts are read but those on damaged pages, where %s', (_what, places) => {
  damage('edge_host', ...places)
  const found = rowsOf('edge_host')
  expect(found?.isWhole).toBe(false)
  // Three rows fit on a page.
  expect(found?.rows).toBe(hosts - 3 * places.length)
  expect(count('SELECT number AS found FROM edge_host_count')).toBe(found?.rows)
})

it('what triggers add up is that of the rows which were read', () => {
  damage('event', 5, 6, 7)
  const found = rowsOf('event')
  expect(found?.rows).toBeGreaterThan(events / 2)
  expect(found?.rows).toBeLessThan(events)
  expect(count("SELECT number AS found FROM event_share WHERE edge_host_uid = 'one'")).toBe(found?.rows)
  expect(count("SELECT number AS found FROM event_share WHERE edge_host_uid = ''")).toBe(found?.rows)
  expect(count('SELECT sum(bytes) AS found FROM event')).toBe(
    count("SELECT bytes AS found FROM event_share WHERE edge_host_uid = ''"),
  )
})
