import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Event } from '../../src/platform/schemas/events.ts'
import { createEvents } from '../../src/platform/events/events.ts'
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

  it('are bounded: the oldest ones go', async () => {
    const { database, read } = platform.rooms.state
    const events = createEvents({ database, read, clock: platform.clock, kept: 3 })
    const host = { uid: randomUUID(), name: 'bounded', projectUid: '' }
    const many = Array.from({ length: 5 }, (_, index) => ({
      ...event(`number-${index}`),
      severity: 'Normal' as const,
    }))
    events.add(host, many)
    await events.job.run()
    const { items } = await listed('source.host=bounded')
    expect(items.map(({ reason }) => reason)).toEqual(['number-4', 'number-3', 'number-2'])
  })
})
