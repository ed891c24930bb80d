import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createContinueTokens } from '../src/lists/continue-token.ts'
import { parseListQuery, type ListParameters } from '../src/lists/query.ts'
import type { ListResource } from '../src/lists/resource.ts'
import { createSqlList } from '../src/lists/sql-list.ts'
import { createStatements, type SqlField } from '../src/lists/sql.ts'
import { createReader } from '../src/store/reader.ts'
import { ratioFigure, type Figure, type Measure } from './figure.ts'
import { single, spread } from './numbers.ts'

const size = 1_000_000

const records: ListResource<SqlField> = {
  name: 'records',
  key: 'metadata.number',
  fields: {
    'metadata.number': { type: 'integer', column: 'seq' },
    'metadata.createTimestamp': { type: 'time', column: 'at' },
    'spec.actor': { type: 'text', column: 'actor' },
    'spec.kind': { type: 'text', column: 'kind' },
  },
  defaultOrder: [{ path: 'metadata.number', direction: -1 }],
}

const source = { table: 'record', columns: 'seq, at, actor, kind, message' }

/** Pages of 50 out of 1,000,000 rows ÷ the same SQL by itself, and how long the other queries hold the event loop. */
export const measureLists: Measure = async (rig) => {
  const { rounds, pages } = rig.isQuick ? { rounds: 5, pages: 100 } : { rounds: 25, pages: 400 }
  rig.say('lists: making 1,000,000 rows')
  const sql = makeRecords(join(rig.folder, 'records.db'))
  const reader = createReader(sql)
  const tokens = createContinueTokens(randomBytes(32))
  const list = createSqlList({
    ...source,
    resource: records,
    // What a room makes of its rows is the room's.
    toItem: (row) => row,
    // As a room that keeps its figure.
    count: () => size,
    sql,
    read: reader.read,
  })
  const statements = createStatements(records, source)
  const read = (parameters: ListParameters) => parseListQuery(parameters, records, { tokens })
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
    ['a filter and its count', { filters: 'spec.kind=kind-3' }],
    ['a filter that finds nothing', { filters: 'spec.actor=nobodyANDspec.kind=kind-3' }],
    ['another order', { orderBy: 'spec.kind=1,metadata.createTimestamp=-1' }],
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
  sql.close()

  const how = `pages of 50 of 1,000,000 rows, ${rounds} rounds of ${pages} pages, processor time, items as the rows are`
  return [
    ratioFigure('lists: last page ÷ first page', last, first, { target: '0.5 to 2', note: how }),
    ratioFigure('lists: first page ÷ its SQL alone', first, firstAlone, { target: '≤ 1.5' }),
    ratioFigure('lists: last page ÷ its SQL alone', last, lastAlone, { target: '≤ 1.5' }),
    { name: 'lists: first page', value: spread(first), unit: 'us' },
    { name: 'lists: last page', value: spread(last), unit: 'us' },
    ...far,
  ]
}

function makeRecords(file: string): DatabaseSync {
  const sql = new DatabaseSync(file)
  sql.exec(`
    PRAGMA journal_mode = WAL;
    CREATE TABLE record (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, actor TEXT NOT NULL, kind TEXT NOT NULL,
      message TEXT NOT NULL) STRICT;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${size})
      INSERT INTO record SELECT i, 1700000000000 + i * 1000, 'user-' || (i % 7), 'kind-' || (i % 11),
        'something was done to the resource ' || i || ' from the console of the host, and it went well' FROM n;
    CREATE INDEX record_at ON record (at);
    CREATE INDEX record_actor ON record (actor);
    CREATE INDEX record_kind ON record (kind);
    PRAGMA wal_checkpoint(TRUNCATE)`)
  return sql
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
