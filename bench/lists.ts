import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { auditList, createSearch, listColumns } from '../src/audit/search.ts'
import { createTrailStore } from '../src/audit/trail-store.ts'
import { createContinueTokens } from '../src/lists/continue-token.ts'
import { parseListQuery, type ListParameters } from '../src/lists/query.ts'
import { createStatements } from '../src/lists/sql.ts'
import { openDatabase, type Database } from '../src/store/database.ts'
import { createReader } from '../src/store/reader.ts'
import { createLog } from '../src/system/log.ts'
import { ratioFigure, type Figure, type Measure } from './figure.ts'
import { single, spread } from './numbers.ts'

const size = 1_000_000

/** Pages of 50 out of 1,000,000 audit records ÷ the same SQL by itself, and how long the other queries hold the event loop. */
export const measureLists: Measure = async (rig) => {
  const { rounds, pages } = rig.isQuick ? { rounds: 5, pages: 100 } : { rounds: 25, pages: 400 }
  rig.say('lists: making 1,000,000 audit records')
  const database = makeRecords(join(rig.folder, 'records.db'))
  const { sql } = database
  const reader = createReader(sql)
  const tokens = createContinueTokens(randomBytes(32))
  const store = createTrailStore(database)
  const search = createSearch({
    database,
    store,
    read: reader.read,
    head: () => size,
    edgeHostId: 'edge-bench',
  })
  const list = { page: (query: ReturnType<typeof read>) => search.page(query, {}) }
  const statements = createStatements(auditList, { table: 'audit', columns: listColumns })
  const read = (parameters: ListParameters) => parseListQuery(parameters, auditList, { tokens })
  const lastToken = read({}).tokenAfter([51], size - 50)

  /** Microseconds of processor a page, by the list and by the statement alone. */
  const own = async (parameters: ListParameters) => {
    const begin = process.cpuUsage()
    for (let page = 0; page < pages; page += 1) await list.page(read(parameters))
    return cpuUsSince(begin) / pages
  }
  const alone = (parameters: ListParameters) => {
    const { sql: text, values } = statements.page(read(parameters))
    const statement = sql.prepare(text)
    const begin = process.cpuUsage()
    for (let page = 0; page < pages; page += 1) statement.all(...values)
    return cpuUsSince(begin) / pages
  }

  const [firstPage, lastPage] = [{}, { continue: lastToken }]
  const first: number[] = []
  const last: number[] = []
  const firstAlone: number[] = []
  const lastAlone: number[] = []
  // One more, which warms the code and the cache and does not count.
  for (let round = -1; round < rounds; round += 1) {
    rig.say(`lists: round ${round + 1} of ${rounds}`)
    const figures = [await own(firstPage), alone(firstPage), await own(lastPage), alone(lastPage)]
    if (round >= 0)
      [first, firstAlone, last, lastAlone].forEach((row, index) => row.push(figures[index] ?? 0))
  }

  const far: Figure[] = []
  for (const [name, parameters] of [
    ['offset 10,000', { offset: 10_000 }],
    ['offset 900,000', { offset: 900_000 }],
    ['a filter and its count', { filters: 'spec.resource.kind=kind-3' }],
    ['a filter that finds nothing', { filters: 'spec.actor.uid=nobodyANDspec.resource.kind=kind-3' }],
    ['another order', { orderBy: 'spec.resource.kind=1,metadata.createTimestamp=-1' }],
  ] as const) {
    rig.say(`lists: ${name}`)
    const { busyMs, tookMs } = await watch(() => list.page(read(parameters)))
    far.push({
      name: `lists: ${name}, time on the event loop`,
      value: single(busyMs),
      unit: 'ms',
      target: '≤ 10',
      note: `the reply after ${tookMs.toFixed(0)} ms`,
    })
  }
  await reader.close()
  database.close()

  const how = `pages of 50 of 1,000,000 audit records, ${rounds} rounds of ${pages} pages, processor time`
  return [
    ratioFigure('lists: last page ÷ first page', last, first, { target: '0.5 to 2', note: how }),
    ratioFigure('lists: first page ÷ its SQL alone', first, firstAlone, { target: '≤ 1.5' }),
    ratioFigure('lists: last page ÷ its SQL alone', last, lastAlone, { target: '≤ 1.5' }),
    { name: 'lists: first page', value: spread(first), unit: 'us' },
    { name: 'lists: last page', value: spread(last), unit: 'us' },
    ...far,
  ]
}

function makeRecords(file: string): Database {
  const database = openDatabase(file, createLog('fatal'))
  database.sql.exec(`
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${size})
      INSERT INTO audit SELECT i, '018bcfe5-6800-7000-8000-' || printf('%012d', i), 1700000000000 + i * 1000, 'user',
        'user-' || (i % 7), 'admin', '192.0.2.' || (i % 200), 'activity', 'kind-' || (i % 11), 'name-' || (i % 100),
        '4bf5d3a1-0000-4000-8000-' || printf('%012d', i), 'Log in with an operating-system account', 'success', 200,
        '7f3c2b1a-0000-4000-8000-' || printf('%012d', i), zeroblob(32), zeroblob(32), i * 700 FROM n;
    PRAGMA wal_checkpoint(TRUNCATE)`)
  return database
}

function cpuUsSince(begin: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(begin)
  return user + system
}

/** How long the event loop was busy while `work` was done; no single hold of it was longer. */
async function watch(work: () => Promise<unknown>): Promise<{ busyMs: number; tookMs: number }> {
  // The thread is there, as it is after the first query.
  await work()
  await nextTurn()
  const before = performance.eventLoopUtilization()
  const begin = performance.now()
  await work()
  const tookMs = performance.now() - begin
  await nextTurn()
  return { busyMs: performance.eventLoopUtilization(before).active, tookMs }
}
