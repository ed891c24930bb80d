import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { auditList, createSearch } from '../src/audit/search.ts'
import { createTrailStore } from '../src/audit/trail-store.ts'
import { createContinueTokens } from '../src/lists/continue-token.ts'
import { parseListQuery, type ListParameters } from '../src/lists/query.ts'
import { openDatabase, type Database } from '../test/support/open-database.ts'
import { createLog } from '../src/system/log.ts'
import { ratioFigure, type Measure } from './figure.ts'
import { spread } from './numbers.ts'

const size = 1_000_000

/** The last page of 50 out of 1,000,000 audit records ÷ the first. */
export const measureLists: Measure = async (rig) => {
  const { rounds, pages } = rig.isQuick ? { rounds: 5, pages: 100 } : { rounds: 25, pages: 400 }
  rig.say('lists: making 1,000,000 audit records')
  const database = makeRecords(join(rig.folder, 'records.db'))
  const tokens = createContinueTokens(randomBytes(32))
  const store = createTrailStore(database)
  const search = createSearch({
    database,
    store,
    // These pages are read on the event loop.
    read: async () => [],
    head: () => size,
    edgeHostId: 'edge-bench',
  })
  const list = { page: (query: ReturnType<typeof read>) => search.page(query, {}) }
  const read = (parameters: ListParameters) => parseListQuery(parameters, auditList, { tokens })
  const lastToken = read({}).tokenAfter([51], size - 50)

  /** Processor time of a page, microseconds. */
  const cost = async (parameters: ListParameters) => {
    const begin = process.cpuUsage()
    for (let page = 0; page < pages; page += 1) await list.page(read(parameters))
    return cpuUsSince(begin) / pages
  }
  const first: number[] = []
  const last: number[] = []
  // Round -1 warms the code and the cache and does not count.
  for (let round = -1; round < rounds; round += 1) {
    rig.say(`lists: round ${round + 1} of ${rounds}`)
    const figures = [await cost({}), await cost({ continue: lastToken })] as const
    if (round < 0) continue
    first.push(figures[0])
    last.push(figures[1])
  }
  database.close()

  const how = `pages of 50 of 1,000,000 audit records, ${rounds} rounds of ${pages} pages, processor time`
  return [
    ratioFigure('lists: last page ÷ first page', last, first, { target: '0.5 to 2', note: how }),
    { name: 'lists: first page', value: spread(first), unit: 'us' },
    { name: 'lists: last page', value: spread(last), unit: 'us' },
  ]
}

function makeRecords(file: string): Database {
  const database = openDatabase(file, createLog('fatal'))
  database.sql.exec(`
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${size})
      INSERT INTO audit SELECT i, '018bcfe5-6800-7000-8000-' || printf('%012d', i), 1700000000000 + i * 1000, 'user',
        'user-' || (i % 7), 'admin', '192.0.2.' || (i % 200), 'activity', 'kind-' || (i % 11), 'name-' || (i % 100),
        '4bf5d3a1-0000-4000-8000-' || printf('%012d', i), 'Log in with an operating-system account', 'success', 200,
        '7f3c2b1a-0000-4000-8000-' || printf('%012d', i), zeroblob(32), zeroblob(32), '', '' FROM n;
    PRAGMA wal_checkpoint(TRUNCATE)`)
  return database
}

function cpuUsSince(begin: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(begin)
  return user + system
}
