import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { AppError } from '../../../src/errors/app-error.ts'
import { createReader, type Reader } from '../../../src/store/reader.ts'

let folder: string
let sql: DatabaseSync
let reader: Reader
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reader-'))
  sql = new DatabaseSync(join(folder, 'it.db'))
  sql.exec('PRAGMA journal_mode = WAL; CREATE TABLE number (n INTEGER PRIMARY KEY) STRICT')
  sql.exec('INSERT INTO number VALUES (1), (2), (3)')
  // No deadline is missed on a busy machine.
  reader = createReader(sql, { limitMs: 120_000 })
})
afterEach(async () => {
  vi.useRealTimers()
  await reader.close()
  sql.close()
  await rm(folder, { recursive: true })
})

const greater = (than: number) => ({ sql: 'SELECT n FROM number WHERE n > ? ORDER BY n', values: [than] })
const count = { sql: 'SELECT count(*) AS count FROM number', values: [] }
// Some hundred milliseconds of work on any processor.
const slow = {
  sql: 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < ?) SELECT count(*) AS count FROM c',
  values: [1_000_000],
}

/** Timers that wait for `vi.advanceTimersByTime`, so that no deadline is missed on a busy machine. */
const holdTimers = () => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })

/** Calls `work` in each turn of the event loop until a call is answered. */
async function whileReading<Result>(reading: Promise<Result>, work: () => void): Promise<Result> {
  let isReading = true
  const ended = reading.finally(() => {
    isReading = false
  })
  // A function, because the compiler assumes that a variable does not change after a check.
  const goesOn = () => isReading
  while (goesOn()) {
    work()
    await turn()
  }
  return ended
}

describe('a reader', () => {
  it('a reader returns the rows of each statement, with what was committed just before', async () => {
    sql.exec('INSERT INTO number VALUES (4)')
    const [rows, [total] = []] = await reader.read([greater(2), count])
    expect(rows?.map(({ n }) => n)).toEqual([3, 4])
    expect(total?.count).toBe(4)
  })

  it('a reader reads all statements of a call from one state of the database', async () => {
    const [[before] = [], , [after] = []] = await whileReading(reader.read([count, slow, count]), () =>
      sql.exec('INSERT INTO number SELECT max(n) + 1 FROM number'),
    )
    expect(after?.count).toBe(before?.count)
    expect((await reader.read([count]))[0]?.[0]?.count).toBeGreaterThan(Number(before?.count))
  })

  it('a reader does not block the event loop', async () => {
    await reader.read([count])
    let turns = 0
    await whileReading(reader.read([slow]), () => (turns += 1))
    expect(turns).toBeGreaterThan(10)
  })

  it('a reader answers each of many calls with its own rows', async () => {
    const calls = Array.from({ length: 50 }, (_none, index) => reader.read([greater(index % 4)]))
    const lengths = (await Promise.all(calls)).map(([rows]) => rows?.length)
    expect(lengths).toEqual(Array.from({ length: 50 }, (_none, index) => 3 - (index % 4)))
  })

  it('a reader cannot write', async () => {
    const write = { sql: 'DELETE FROM number', values: [] }
    await expect(reader.read([write])).rejects.toThrow('readonly')
    expect(sql.prepare(count.sql).get()?.count).toBe(3)
  })

  it('a reader refuses an invalid statement, and reads the next', async () => {
    await expect(reader.read([{ sql: 'SELECT missing', values: [] }])).rejects.toThrow('no such column')
    expect(await reader.read([greater(2)])).toEqual([[{ n: 3 }]])
  })

  it('a reader that is closed refuses unfinished reads, and leaves nothing to wait for', async () => {
    const reading = reader.read([slow])
    const refused = expect(reading).rejects.toThrow('has ended')
    await reader.close()
    await refused
  })

  it('an idle reader ends its thread, and starts it again for the next call', async () => {
    const impatient = createReader(sql, { idleMs: 1 })
    const threads = () => process.getActiveResourcesInfo().filter((name) => name === 'Worker').length
    for (let round = 0; round < 3; round += 1) {
      expect(await impatient.read([greater(2)])).toEqual([[{ n: 3 }]])
      await expect.poll(() => threads()).toBe(0)
    }
  })

  it('a reader ends a read that takes too long, names the remedy, and reads the next', async () => {
    const strict = createReader(sql, { limitMs: 200 })
    holdTimers()
    const long = strict.read([{ ...slow, values: [3_000_000] }])
    vi.advanceTimersByTime(200)
    vi.useRealTimers()
    await expect(long).rejects.toMatchObject({
      code: 'QueryTooLong',
      status: 503,
      message: expect.stringContaining('narrow the filter'),
    })
    // SQLite cannot be interrupted: until it returns, further calls are refused.
    let found: unknown
    while (found === undefined)
      found = await strict.read([greater(2)]).catch((error: unknown) => {
        expect((error as AppError).code).toMatch(/^(TooManyQueries|QueryTooLong)$/)
        return undefined
      })
    expect(found).toEqual([[{ n: 3 }]])
    await strict.close()
  })

  it('a reader has a maximum of waiting calls, and says when to ask again', async () => {
    const narrow = createReader(sql, { maximumWaiting: 2 })
    const running = narrow.read([slow])
    const waiting = [0, 1].map((than) => narrow.read([greater(than)]))
    await expect(narrow.read([greater(2)])).rejects.toMatchObject({
      code: 'TooManyQueries',
      status: 503,
      retryAfterSec: 5,
    })
    await running
    expect((await Promise.all(waiting)).map(([rows]) => rows?.length)).toEqual([3, 2])
    await narrow.close()
  })

  it('a call waits no longer for a reader than allowed', async () => {
    const brief = createReader(sql, { limitMs: 300 })
    holdTimers()
    const running = brief.read([slow])
    const waiting = brief.read([count])
    const refused = expect(waiting).rejects.toMatchObject({ code: 'TooManyQueries' })
    const ended = expect(running).rejects.toThrow('narrow')
    vi.advanceTimersByTime(300)
    vi.useRealTimers()
    await refused
    await ended
    await brief.close()
  })

  it('equal calls that wait for a reader are read once', async () => {
    const running = reader.read([slow])
    const [one, two, other] = [reader.read([count]), reader.read([count]), reader.read([greater(2)])]
    expect(two).toBe(one)
    expect(other).not.toBe(one)
    sql.exec('INSERT INTO number VALUES (4)')
    expect((await two)[0]?.[0]?.count).toBe(4)
    await Promise.all([running, other])
  })

  it('a reader reports why the database cannot be opened', async () => {
    const gone = new DatabaseSync(join(folder, 'gone.db'))
    await rm(join(folder, 'gone.db'))
    const other = createReader(gone)
    await expect(other.read([count])).rejects.toThrow('unable to open')
    gone.close()
  })

  it('a database in memory is read through its only connection', async () => {
    const memory = new DatabaseSync(':memory:')
    const [rows] = await createReader(memory).read([{ sql: 'SELECT ? AS one', values: [1] }])
    expect(rows).toEqual([{ one: 1 }])
  })
})
