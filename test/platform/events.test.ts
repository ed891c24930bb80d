import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Event } from '../../src/platform/events/schemas.ts'
import { createEvents, type EventLimit } from '../../src/platform/events/events.ts'
import { playEdgeHost, type PlayedEdgeHost } from '../support/played-edge-host.ts'
import { createTestPlatform } from '../support/test-platform.ts'

type Headers = Readonly<Record<string, string>>
const url = '/v1/events/components'
const password = 'a long password'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let admin: Headers
let projectUid: string

async function post(path: string, payload: object, headers: Headers = admin) {
  return platform.app.inject({ method: 'POST', url: path, headers, payload })
}

async function loggedIn(name: string, defaultProjectUid?: string): Promise<PlayedEdgeHost> {
  const spec = defaultProjectUid === undefined ? {} : { defaultProjectUid }
  const made = await post('/v1/edgehosts/tokens', { metadata: { name: `of ${name}` }, spec })
  const host = playEdgeHost(platform)
  await host.register(made.json<{ token: string }>().token, name)
  await host.logIn()
  return host
}

beforeAll(async () => {
  platform = await createTestPlatform()
  await platform.addUser('root@plant.example', password, ['admin'])
  admin = await platform.signIn('root@plant.example', password)
  projectUid = (await post('/v1/projects', { metadata: { name: 'north' } })).json<{ uid: string }>().uid
})
afterAll(() => platform.close())

const event = (reason: string, more: object = {}) => ({
  ...{ reason, severity: 'Warning', message: `${reason} was seen` },
  metadata: { uid: randomUUID(), creationTimestamp: '2026-11-01T08:00:00Z' },
  ...more,
})
const report = (host: PlayedEdgeHost, ...events: object[]) =>
  post(`${url}/bulk`, events, { authorization: host.token })

async function listed(filters: string, headers: Headers = admin) {
  const query = `?filters=${encodeURIComponent(filters)}`
  const reply = await platform.app.inject({ url: `${url}${query}`, headers })
  return reply.json<{ items: Event[]; listmeta: { count: number } }>()
}

describe('the events of a host', () => {
  it('are listed, the newest first, in the scope of the host; filters find them', async () => {
    const [host, other] = [await loggedIn('press-1', projectUid), await loggedIn('press-2')]
    const involvedObject = { kind: 'disk', name: 'sda', uid: '7' }
    const one = event('DiskFull', { involvedObject, source: { component: 'inventory' } })
    const two = event('ClockJump')
    const reply = await report(host, one, two)
    expect([reply.statusCode, reply.headers.audituid]).toEqual([201, undefined])
    expect(reply.json()).toEqual([{ uid: one.metadata.uid }, { uid: two.metadata.uid }])
    await report(other, event('DiskFull'))

    const inProject = { ...admin, projectuid: projectUid }
    const { items } = await listed('source.host=press-1', inProject)
    expect(items.map(({ reason }) => reason)).toEqual(['ClockJump', 'DiskFull'])
    expect(items[1]).toMatchObject({
      ...{ message: 'DiskFull was seen', severity: 'Warning', involvedObject },
      metadata: { uid: one.metadata.uid, creationTimestamp: '2026-11-01T08:00:00.000Z' },
      source: { component: 'inventory', host: 'press-1', hostUid: host.uid },
    })
    expect((await listed('reason=DiskFull')).items.map(({ source }) => source.host)).toEqual(['press-2'])
  })

  it('are kept once, however often they are reported; another host may use the same uid', async () => {
    const [host, other] = [await loggedIn('mill-1'), await loggedIn('mill-2')]
    const seen = event('Twice')
    for (let round = 0; round < 3; round += 1) expect((await report(host, seen, seen)).statusCode).toBe(201)
    await report(other, seen)
    expect((await listed('reason=Twice')).listmeta.count).toBe(2)
  })

  it('are refused as a whole where one is wrong, with its place', async () => {
    const host = await loggedIn('saw-1')
    const wrong = { ...event('Wrong'), severity: 'Loud' }
    const reply = await report(host, event('Fine'), wrong)
    expect([reply.statusCode, reply.body]).toEqual([400, expect.stringContaining('severity')])
    const noTime = event('Wrong', {
      metadata: { uid: randomUUID(), creationTimestamp: '2026-99-99T08:00:00Z' },
    })
    const late = await report(host, event('Fine'), noTime)
    expect([late.statusCode, late.body]).toEqual([
      400,
      expect.stringContaining('[1].metadata.creationTimestamp'),
    ])
    expect((await listed('source.host=saw-1')).listmeta.count).toBe(0)
  })

  it('are reported by hosts alone, and read by users alone', async () => {
    const host = await loggedIn('drill-1')
    expect((await post(`${url}/bulk`, [event('No')])).statusCode).toBe(403)
    expect((await post(`${url}/bulk`, [event('No')], {})).statusCode).toBe(401)
    const reply = await platform.app.inject({ url, headers: { authorization: host.token } })
    expect(reply.statusCode).toBe(403)
  })

  describe('are bounded when they arrive', () => {
    const reported = (count: number, name: string, message = 'short') =>
      Array.from({ length: count }, (_, index) => ({
        ...event(`${name}-${index}`),
        ...{ severity: 'Normal' as const, message },
      }))
    const limited = (ofHost: EventLimit, all: EventLimit = ofHost) => {
      const { database, read } = platform.rooms.state
      return createEvents({ database, read, clock: platform.clock, limits: { ofHost, all } })
    }
    const many: EventLimit = { number: 1_000_000, bytes: 2 ** 40 }
    const reasons = async (name: string) =>
      (await listed(`source.host=${name}`)).items.map(({ reason }) => reason)

    it('by their number: the oldest of the host go, and none of another host', async () => {
      const other = { uid: randomUUID(), name: 'quiet', projectUid: '' }
      const host = { uid: randomUUID(), name: 'loud', projectUid: '' }
      const events = limited({ number: 3, bytes: 2 ** 40 }, many)
      events.add(other, reported(2, 'quiet'))
      events.add(host, reported(2, 'one'))
      events.add(host, reported(5, 'two'))
      expect(await reasons('loud')).toEqual(['two-4', 'two-3', 'two-2'])
      expect(await reasons('quiet')).toEqual(['quiet-1', 'quiet-0'])
    })

    it('by their bytes', async () => {
      const host = { uid: randomUUID(), name: 'wordy', projectUid: '' }
      const events = limited({ number: 1_000, bytes: 200_000 }, many)
      // 6 KiB each: characters of three bytes.
      for (let round = 0; round < 6; round += 1)
        events.add(host, reported(100, `round-${round}`, '\u20ac'.repeat(2_048)))
      const { database } = platform.rooms.state
      const stored = database.sql
        .prepare('SELECT count(*) AS number, sum(bytes) AS bytes FROM event WHERE edge_host_uid = ?')
        .get(host.uid)
      expect(Number(stored?.bytes)).toBeLessThanOrEqual(200_000)
      expect(await reasons('wordy')).toContain('round-5-99')
      const shares = database.sql.prepare('SELECT number, bytes FROM event_share WHERE edge_host_uid = ?')
      expect(shares.get(host.uid)).toEqual(stored)
      const all = database.sql.prepare('SELECT count(*) AS number, sum(bytes) AS bytes FROM event').get()
      expect(shares.get('')).toEqual(all)
    })

    it('together: the oldest of all go, also by the job where there were no limits before', async () => {
      const host = { uid: randomUUID(), name: 'early', projectUid: '' }
      limited(many).add(host, reported(20, 'early'))
      const events = limited(many, { number: 3, bytes: 2 ** 40 })
      await events.job.run()
      expect(await reasons('early')).toEqual(['early-19', 'early-18', 'early-17'])
      events.add({ ...host, uid: randomUUID(), name: 'late' }, reported(2, 'late'))
      expect([await reasons('early'), await reasons('late')]).toEqual([['early-19'], ['late-1', 'late-0']])
    })
  })
})
