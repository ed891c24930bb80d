import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { auditList } from '../../../src/audit/search.ts'
import { filterPaths, orderPaths } from '../../../src/lists/resource.ts'
import { openDatabase } from '../../support/open-database.ts'
import { readDocument } from '../../support/api-document.ts'
import { captureLog } from '../../support/https-server.ts'
import { createRandom } from '../../support/random.ts'
import { createTestEdge, type TestEdge } from '../../support/test-edge.ts'

const { operations, problemsOf } = readDocument()
const listAudits = operations.find(({ operationId }) => operationId === 'listAudits')!
const seed = Number(process.env.FUZZ_SEED ?? Math.trunc(Math.random() * 2 ** 31))
const size = 100_000

describe(`the list of ${size} audit records, with seed ${seed}`, () => {
  const random = createRandom(seed)
  let folder: string
  let edge: TestEdge
  let token = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fuzz-list-'))
    const database = openDatabase(join(folder, 'edgehostd.db'), captureLog().log)
    database.sql.exec(`
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${size})
        INSERT INTO audit SELECT i, '018bcfe5-6800-7000-8000-' || printf('%012d', i), 1700000000000 + i * 1000, 'user',
          'user-' || (i % 7), 'admin', '192.0.2.' || (i % 200), 'activity', 'kind-' || (i % 11), 'name-' || (i % 100),
          '4bf5d3a1-0000-4000-8000-' || printf('%012d', i), 'Log in with an operating-system account', 'success', 200,
          '7f3c2b1a-0000-4000-8000-' || printf('%012d', i), zeroblob(32), zeroblob(32), '', '' FROM n`)
    database.close()
    edge = await createTestEdge({ stateDirectory: folder })
    token = (await edge.login('alice')).access
  })
  afterAll(async () => {
    await edge.stop()
    await rm(folder, { recursive: true })
  })

  const values: Readonly<Record<string, () => string>> = {
    'metadata.number': () => String(random.below(size * 2)),
    'metadata.createTimestamp': () => new Date(1_700_000_000_000 + random.below(size) * 1_000).toISOString(),
    'spec.actor.uid': () => random.pick(['user-3', 'no-such-user', 'alice']),
    'spec.resource.kind': () => random.pick(['kind-3', 'session', 'nothing']),
    'spec.actionType': () => random.pick(['activity', 'create']),
  }
  const condition = () => {
    const path = random.pick(filterPaths(auditList))
    return `${path}=${values[path]?.() ?? 'x'}`
  }
  /** Up to as many conditions as there may be, most of which match nothing or nearly all. */
  const filters = () =>
    Array.from({ length: random.below(12) }, () => `${condition()}${random.pick(['AND', 'OR'])}`).join('') +
    condition()
  const orderBy = () =>
    orderPaths(auditList)
      .filter(() => random.isChosen(0.6))
      .slice(0, 5)
      .map((path) => `${path}=${random.pick(['1', '-1'])}`)
      .join(',')

  function question(): URLSearchParams {
    const query = new URLSearchParams()
    if (random.isChosen(0.7)) query.set('filters', filters())
    if (random.isChosen(0.7)) query.set('orderBy', orderBy())
    if (random.isChosen(0.3)) query.set('offset', String(random.below(size + 100)))
    if (random.isChosen(0.3)) query.set('startTime', values['metadata.createTimestamp']!())
    if (random.isChosen(0.2)) query.set('resourceKind', 'kind-3')
    return query
  }

  async function ask(query: URLSearchParams) {
    const url = `/v1/edge-mgmt/edgehosts/current/audits?${query.toString()}`
    const { statusCode: status, headers, body } = await edge.get(url, token)
    const told = `seed ${seed}: ${url}`
    expect(problemsOf(listAudits, { status, headers, body }), told).toEqual([])
    return { status, body, told }
  }

  it('expensive list queries are answered, and the page behind each too', async () => {
    for (let time = 0; time < 40; time += 1) {
      const query = question()
      const { status, body, told } = await ask(query)
      expect(status, told).toBe(200)
      const { continue: next } = (JSON.parse(body) as { listmeta: { continue: string } }).listmeta
      if (next === '') continue
      query.set('continue', next)
      expect((await ask(query)).status, told).toBe(200)
    }
  })

  it('concurrent list queries are answered or refused with a time to ask again, and later ones answered', async () => {
    const replies = await Promise.all(
      Array.from({ length: 40 }, () =>
        edge.get(`/v1/edge-mgmt/edgehosts/current/audits?${question().toString()}`, token),
      ),
    )
    const statuses = replies.map(({ statusCode }) => statusCode)
    const others = replies.filter(({ statusCode }) => statusCode !== 200 && statusCode !== 503)
    expect(others.map(({ body }) => body)).toEqual([])
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(8)
    for (const { statusCode, headers } of replies)
      expect(headers['retry-after'] === undefined).toBe(statusCode === 200)
    expect((await ask(question())).status).toBe(200)
    expect((await edge.get('/v1/ping')).statusCode).toBe(200)
  })
})
