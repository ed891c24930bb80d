import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDatabase, type Database } from '../../support/open-database.ts'
import { migrations } from '../../../src/edgehostd/migrations.ts'
import { newestSchema } from '../../../src/store/structure.ts'
import { captureLog } from '../../support/https-server.ts'

let folder: string
let file: string
let opened: Database[]
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-database-'))
  file = join(folder, 'edgehostd.db')
  opened = []
})
afterEach(async () => {
  for (const { sql } of opened) if (sql.isOpen) sql.close()
  await rm(folder, { recursive: true })
})

function open(): Database & { texts: () => string[] } {
  const { log, texts } = captureLog()
  const database = openDatabase(file, log)
  opened.push(database)
  return { ...database, texts }
}
const names = ({ sql }: Database) =>
  sql
    .prepare('SELECT name FROM account ORDER BY first_login_at')
    .all()
    .map(({ name }) => name)
const add = ({ sql }: Database, name: string, at = 1) =>
  sql.prepare('INSERT INTO account (name, first_login_at) VALUES (?, ?)').run(name, at)

describe('openDatabase', () => {
  it('openDatabase creates the file with the newest schema', () => {
    const { sql } = open()
    expect(sql.prepare('PRAGMA user_version').get()).toEqual({ user_version: newestSchema(migrations) })
    expect(sql.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' })
    expect(sql.prepare('PRAGMA synchronous').get()).toEqual({ synchronous: 2 })
  })

  it('a database that is opened again has what was written', () => {
    const first = open()
    add(first, 'bob')
    first.close()
    expect(names(open())).toEqual(['bob'])
  })

  it('a file of a newer version is refused and not changed', async () => {
    open().close()
    const raw = new DatabaseSync(file)
    raw.exec(`PRAGMA user_version = ${newestSchema(migrations) + 1}`)
    raw.close()
    const before = await readFile(file)
    expect(open).toThrow('install the newer daemon again with dpkg --install')
    expect((await readFile(file)).equals(before)).toBe(true)
    expect((await readdir(folder)).filter((name) => name.includes('corrupt'))).toEqual([])
  })

  it('a file that is not a database is kept aside with a log line, and a new one begun', async () => {
    await writeFile(file, 'no database at all '.repeat(1_000))
    const database = open()
    expect(names(database)).toEqual([])
    const [aside = ''] = (await readdir(folder)).filter((name) => name.startsWith('edgehostd.db.corrupt-'))
    expect(database.texts()).toEqual([
      'the database was damaged; its file is kept and a new database is started; ' +
        `check the disk with dmesg --level=err, and recover what is left with sqlite3 ${join(folder, aside)} .recover`,
    ])
    expect(await readFile(join(folder, aside), 'utf8')).toContain('no database at all')
    add(database, 'bob')
  })

  it('a file with damaged pages is kept aside', async () => {
    const first = open()
    for (let count = 0; count < 500; count += 1) add(first, `user ${count}`.padEnd(200, 'x'), count)
    first.close()
    const bytes = await readFile(file)
    bytes.fill(0xff, 4_096, bytes.length - 4_096)
    await writeFile(file, bytes)
    expect(names(open())).toEqual([])
    expect((await readdir(folder)).some((name) => name.includes('corrupt'))).toBe(true)
  })

  it('a file that was cut off is kept aside', async () => {
    const first = open()
    for (let count = 0; count < 500; count += 1) add(first, `user ${count}`.padEnd(200, 'x'), count)
    first.close()
    await truncate(file, 10_000)
    expect(names(open())).toEqual([])
  })

  it('an empty file becomes a new database', async () => {
    await writeFile(file, '')
    expect(open().texts()).toEqual([])
  })

  it('an error that is not damage is passed on', () => {
    file = join(folder, 'no', 'such', 'folder', 'edgehostd.db')
    expect(open).toThrow('unable to open')
  })
})

describe('a transaction', () => {
  it('an exception undoes the transaction and is passed on', () => {
    const database = open()
    const work = () =>
      database.transaction(() => {
        add(database, 'bob')
        throw new Error('no')
      })
    expect(work).toThrow('no')
    expect(names(database)).toEqual([])
    database.transaction(() => add(database, 'alice'))
    expect(names(database)).toEqual(['alice'])
  })

  it('a transaction does not block the event loop while another process writes', () => {
    const database = open()
    const other = new DatabaseSync(file)
    other.exec('BEGIN IMMEDIATE')
    // Milliseconds; SQLite waits so long.
    expect(database.sql.prepare('PRAGMA busy_timeout').get()).toEqual({ timeout: 5 })
    expect(() => database.transaction(() => add(database, 'bob'))).toThrow('locked')
    other.close()
    database.transaction(() => add(database, 'bob'))
    expect(names(database)).toEqual(['bob'])
  })

  it('a transaction returns the result of its work', () => {
    expect(open().transaction(() => 5)).toBe(5)
  })

  it('a transaction before another one is not synced to disk, and every other is, however the next one ends', () => {
    const database = open()
    const synchronous = () => database.sql.prepare('PRAGMA synchronous').get()?.synchronous
    const [normal, full] = [1, 2]
    expect(database.transactionBeforeNext(synchronous)).toBe(normal)
    expect(synchronous()).toBe(full)
    const refused = () =>
      database.transactionBeforeNext(() => {
        add(database, 'bob')
        throw new Error('no')
      })
    expect(refused).toThrow('no')
    expect([synchronous(), names(database)]).toEqual([full, []])
    expect(database.transaction(() => database.transactionBeforeNext(synchronous))).toBe(full)
  })
})

it('kill -9 during writes loses nothing that was acknowledged, five times in a row', async () => {
  const writer = join(import.meta.dirname, '../../support/database-writer.ts')
  let acknowledged = -1
  for (let round = 0; round < 5; round += 1) {
    const child = spawn(process.execPath, [writer, file], { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    const enough = acknowledged + 20
    await new Promise<void>((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', (code) => reject(new Error(`the writer ended with ${code}`)))
      child.stdout.on('data', (chunk: Buffer) => {
        output += chunk.toString()
        if (Number(output.trimEnd().split('\n').at(-1)) >= enough) resolve()
      })
    })
    const gone = once(child, 'close')
    child.kill('SIGKILL')
    await gone
    acknowledged = Number(output.slice(0, output.lastIndexOf('\n')).split('\n').at(-1))
    const database = open()
    expect(database.texts()).toEqual([])
    expect(names(database).length).toBeGreaterThan(acknowledged)
    expect(database.sql.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' })
    database.close()
  }
})
