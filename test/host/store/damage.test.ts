import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { migrations as ofHost } from '../../../src/edgehostd/migrations.ts'
import { migrations as ofPlatform } from '../../../src/edgeplatformd/migrations.ts'
import {
  DatabaseDamaged,
  openDatabase,
  suspectDatabase,
  type Database,
  type OpenOptions,
} from '../../../src/store/database.ts'
import { newestSchema, type Migrations } from '../../../src/store/structure.ts'
import { captureLog } from '../../support/https-server.ts'
import { createRandom } from '../../support/random.ts'

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
const pageBytes = 4_096
const newest = newestSchema(ofHost)
const withSteps = (...more: readonly string[]): Migrations => ({
  ...ofHost,
  steps: [...ofHost.steps, ...more],
})

let folder: string
let file: string
let opened: Database[]
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'edgehostd-damage-'))
  file = join(folder, 'edgehostd.db')
  opened = []
})
afterEach(() => {
  for (const { sql } of opened) if (sql.isOpen) sql.close()
  rmSync(folder, { recursive: true })
})

const { log, lines } = captureLog()
function open(options?: OpenOptions, migrations: Migrations = ofHost): Database {
  const database = openDatabase(file, log, migrations, options)
  opened.push(database)
  return database
}

/** A database of some pages in each of its larger tables. */
function fill(migrations: Migrations = ofHost): void {
  const { sql, close } = open({}, migrations)
  const insert = sql.prepare(
    `INSERT INTO audit VALUES (${Array.from({ length: 19 }, () => '?').join()})`.replace(
      /^INSERT INTO audit/,
      'INSERT INTO audit (seq, uid, at, actor_type, actor, role, address, action, kind, resource_name, resource_uid, message, outcome, status, request_id, previous_hash, hash, actor_uid, project_uid)',
    ),
  )
  sql.exec('BEGIN')
  for (let seq = 1; seq <= 60; seq += 1) {
    const bytes = new Uint8Array(32).fill(seq)
    insert.run(
      ...[seq, `uid ${seq}`, seq, 'user', `user ${seq % 7}`, 'admin', '::1', 'create', 'session', '', ''],
      ...['Log in '.repeat(20), 'success', 200, `request ${seq}`, bytes, bytes, '', ''],
    )
  }
  sql.exec('COMMIT')
  close()
}

/** Every row of every table. */
function contentOf(path: string): string {
  const sql = new DatabaseSync(path, { readOnly: true })
  try {
    const tables = sql
      .prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name",
      )
      .all()
    return JSON.stringify(
      tables.map(({ name }) => [name, sql.prepare(`SELECT * FROM "${String(name)}"`).all()]),
    )
  } finally {
    sql.close()
  }
}

const change = (statements: string) => {
  const sql = new DatabaseSync(file)
  sql.enableDefensive(false)
  sql.exec(statements)
  sql.close()
}
const asides = () => readdirSync(folder).filter((name) => /\.corrupt-[^-]+-\d+-\d+T\d+\.\d+Z$/.test(name))

describe('a damaged database', () => {
  it.each(['random bytes', 'zeros', 'another page'])(
    'each page in turn that is overwritten with %s is moved aside or can be read',
    (what) => {
      const random = createRandom(seed)
      console.info(`seed ${seed}`)
      fill()
      const whole = readFileSync(file)
      const content = contentOf(file)
      const pages = whole.length / pageBytes
      let moved = 0
      for (let page = 0; page < pages; page += 1) {
        const bytes = Buffer.from(whole)
        const place = bytes.subarray(page * pageBytes, (page + 1) * pageBytes)
        if (what === 'another page') {
          const other = (page + 1 + random.below(pages - 1)) % pages
          whole.copy(place, 0, other * pageBytes, (other + 1) * pageBytes)
        } else if (what === 'zeros') place.fill(0)
        else for (let at = 0; at < pageBytes; at += 1) place[at] = random.below(256)
        writeFileSync(file, bytes)
        const database = open()
        // SQLite cannot tell a whole page in the place of another of its kind: nothing can then be said of the rows.
        if (database.aside === undefined)
          expect(what === 'another page' || contentOf(file) === content, `page ${page}`).toBe(true)
        else {
          moved += 1
          expect(readFileSync(database.aside).length, `page ${page}`).toBe(whole.length)
          expect(database.sql.prepare('SELECT count(*) AS rows FROM audit').get()).toEqual({ rows: 0 })
        }
        database.close()
        for (const name of readdirSync(folder)) rmSync(join(folder, name))
      }
      expect(moved).toBeGreaterThan(pages / 2)
    },
  )

  it.each([
    ['DROP TABLE host', 'the table host is missing'],
    ['ALTER TABLE audit DROP COLUMN role', 'the table audit is not as it was made'],
    ['ALTER TABLE session ADD COLUMN more TEXT', 'the table session is not as it was made'],
    ['DROP INDEX audit_kind', 'the index audit_kind is missing'],
    [
      'DROP INDEX audit_kind; CREATE INDEX audit_kind ON audit (action)',
      'the index audit_kind is not as it was made',
    ],
    ['DROP TRIGGER audit_is_not_removed', 'the trigger audit_is_not_removed is missing'],
    ['PRAGMA user_version = 0', 'does not belong to this schema'],
    ['PRAGMA user_version = -7', 'its schema would be -7'],
    [
      'DROP TABLE cluster; PRAGMA user_version = 77',
      'its schema would be 77, and the table cluster is missing',
    ],
    [
      "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = replace(sql, 'CREATE', 'CR\u0001ATE') WHERE name = 'audit'",
      'malformed database schema',
    ],
  ])('after %s it is moved aside and the host answers', (statements, reason) => {
    fill()
    change(statements)
    lines.length = 0
    const database = open()
    expect(database.aside).toBeDefined()
    expect(database.sql.prepare('SELECT count(*) AS rows FROM host').get()).toEqual({ rows: 0 })
    expect(lines).toEqual([
      expect.objectContaining({
        level: 50,
        err: expect.objectContaining({ message: expect.stringContaining(reason) }),
      }),
    ])
  })

  it.each([18, 19])('is moved aside where byte %i of its header names a format that there is not', (at) => {
    fill()
    const bytes = readFileSync(file)
    bytes[at] = 9
    writeFileSync(file, bytes)
    expect(open().aside).toBeDefined()
  })

  it('is left as it is where a platform opens it, which does not start', () => {
    fill(ofPlatform)
    change('DROP INDEX audit_kind')
    const before = readFileSync(file)
    expect(() => open({ onDamage: 'refuse' }, ofPlatform)).toThrow(DatabaseDamaged)
    expect(() => open({ onDamage: 'refuse' }, ofPlatform)).toThrow('the index audit_kind is missing')
    expect(readFileSync(file).equals(before)).toBe(true)
    expect(asides()).toEqual([])
  })

  it('is found by the next start where only a statement has seen it', () => {
    fill()
    // An index without one of its entries: the quick check does not compare them with the rows.
    const [{ root }] = (() => {
      const sql = new DatabaseSync(file)
      const found = sql.prepare("SELECT rootpage AS root FROM sqlite_schema WHERE name = 'audit_uid'").all()
      sql.close()
      return found as unknown as [{ root: number }]
    })()
    const bytes = readFileSync(file)
    const at = bytes.indexOf('uid 33', (root - 1) * pageBytes)
    bytes.write('uid 00', at)
    writeFileSync(file, bytes)
    const first = open()
    expect(first.aside).toBeUndefined()
    first.close()
    suspectDatabase(file)
    expect(open().aside).toBeDefined()
    expect(readdirSync(folder)).not.toContain('edgehostd.db.suspect')
  })

  it('is noted when a transaction sees it, with one line in the journal', () => {
    fill()
    const database = open()
    lines.length = 0
    const fail = () =>
      database.transaction(() => {
        throw Object.assign(new Error('database disk image is malformed'), { errcode: 267 })
      })
    expect(fail).toThrow('malformed')
    expect(fail).toThrow('malformed')
    expect(lines.map(({ msg }) => msg)).toEqual([
      'the database is damaged; the next start checks all of it: systemctl restart edgehostd',
    ])
    expect(readdirSync(folder)).toContain('edgehostd.db.suspect')
    database.close()
    // It was not: nothing is moved.
    expect(open().aside).toBeUndefined()
    expect(readdirSync(folder)).not.toContain('edgehostd.db.suspect')
  })
})

describe('a database that is not damaged', () => {
  it('stays where an administrator has added a table, an index and statistics', () => {
    fill()
    change('CREATE TABLE notes (text TEXT); CREATE INDEX mine ON audit (message); ANALYZE')
    const database = open()
    expect(database.aside).toBeUndefined()
    expect(database.sql.prepare('SELECT count(*) AS rows FROM audit').get()).toEqual({ rows: 60 })
  })

  it.each([
    ['a statement that fails', 'CREATE TABLE more (a) STRICT; UPDATE none SET a = 1'],
    ['a rule that the rows break', 'CREATE UNIQUE INDEX one_actor ON audit (actor)'],
  ])('is kept and the start refused where a migration has %s', (_what, statements) => {
    fill()
    const before = readFileSync(file)
    const content = contentOf(file)
    const faulty = withSteps('CREATE TABLE fine (a TEXT) STRICT', statements)
    for (let start = 0; start < 2; start += 1)
      expect(() => open({}, faulty)).toThrow(
        new RegExp(
          `^the database is intact, and its change to schema ${newest + 2} fails: .*report this line$`,
        ),
      )
    expect(asides()).toEqual([])
    expect(readFileSync(file).equals(before)).toBe(true)
    // The version from before still reads it.
    open().close()
    expect(contentOf(file)).toBe(content)
  })

  it('of a newer version is refused and kept, as is one that is too old', () => {
    fill()
    change(`PRAGMA user_version = ${newest + 5}; CREATE TABLE of_later (a TEXT)`)
    expect(() => open()).toThrow('install the newer daemon again with dpkg --install')
    change(`DROP TABLE of_later; PRAGMA user_version = ${newest}`)
    const later = withSteps('CREATE TABLE later (a TEXT) STRICT', 'CREATE TABLE latest (a TEXT) STRICT')
    const folded = {
      first: newest + 1,
      steps: [later.steps.slice(0, -1).join('\n'), later.steps.at(-1)!],
      install: 'version 4.2',
    }
    expect(() => open({}, folded)).toThrow(
      `the database has schema ${newest}, this program upgrades those from ${newest + 1} on: install version 4.2 first and start it once, then this one. The file is kept as it is`,
    )
    expect(asides()).toEqual([])
    const database = open({}, later)
    expect(database.sql.prepare('PRAGMA user_version').get()).toEqual({ user_version: newest + 2 })
  })

  it.each([
    ['edgehostd', ofHost],
    ['edgeplatformd', ofPlatform],
  ])('of %s opens at each of its numbers, with the log of a killed daemon too', (_program, migrations) => {
    for (const [index] of migrations.steps.entries()) {
      const old = openDatabase(file, log, { ...migrations, steps: migrations.steps.slice(0, index + 1) })
      // Its log is not written back, as after a kill.
      for (const part of readdirSync(folder)) cpSync(join(folder, part), join(folder, `kept-${part}`))
      old.close()
      for (const part of readdirSync(folder).filter((name) => name.startsWith('kept-')))
        cpSync(join(folder, part), join(folder, part.slice('kept-'.length)))
      const now = open({ onDamage: 'refuse' }, migrations)
      expect(now.sql.prepare('PRAGMA user_version').get()).toEqual({ user_version: newestSchema(migrations) })
      now.close()
      for (const name of readdirSync(folder)) rmSync(join(folder, name))
    }
  })
})
