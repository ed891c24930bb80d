import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { silenceCondition } from '../../../src/platform/clusters/list.ts'
import type { EdgeHostDevice } from '../../../src/platform/hosts/schemas.ts'
import { playEdgeHost, type PlayedEdgeHost } from '../../support/played-edge-host.ts'
import { createTestPlatform } from '../../support/test-platform.ts'
import { minuteMs } from '../../support/turning-clock.ts'
import { waitFor } from '../../support/wait-for.ts'

type Headers = Readonly<Record<string, string>>
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let admin: Headers
let token: string
const password = 'a long password'

beforeAll(async () => {
  platform = await createTestPlatform()
  await platform.addUser('root@plant.example', password, ['admin'])
  await platform.addUser('viewer@plant.example', password, ['viewer'])
  admin = await platform.signIn('root@plant.example', password)
  const payload = { metadata: { name: 'hosts' } }
  const made = await platform.app.inject({
    ...{ method: 'POST', url: '/v1/edgehosts/tokens', headers: admin, payload },
  })
  token = made.json<{ token: string }>().token
})
afterAll(() => platform.close())

async function loggedIn(name: string): Promise<PlayedEdgeHost> {
  const host = playEdgeHost(platform)
  await host.register(token, name)
  await host.logIn()
  return host
}
const by = (host: PlayedEdgeHost): Headers => ({ authorization: host.token })

async function ask(
  method: 'GET' | 'PUT' | 'PATCH' | 'POST' | 'DELETE',
  url: string,
  headers: Headers,
  payload?: object,
) {
  const reply = await platform.app.inject({ method, url, headers, ...(payload ? { payload } : {}) })
  return { status: reply.statusCode, body: reply.body, headers: reply.headers }
}
const beat = (host: PlayedEdgeHost, headers = by(host), body: object = { state: 'healthy' }) =>
  ask('PATCH', `/v1/edgehosts/${host.uid}/health`, headers, body)
const seen = async ({ uid }: PlayedEdgeHost) =>
  JSON.parse((await ask('GET', `/v1/edgehosts/${uid}`, admin)).body) as EdgeHostDevice
const listed = async (filters: string) => {
  const url = `/v1/edgehosts?filters=${encodeURIComponent(filters)}`
  const { items } = JSON.parse((await ask('GET', url, admin)).body) as { items: EdgeHostDevice[] }
  return items.map(({ metadata }) => metadata.name).sort()
}
const facts = (device: object) => ({
  spec: { device, service: { version: '1.3.0' }, host: { hostAddress: '192.0.2.9', hostChecksum: 'abc' } },
})

describe('the heartbeat of a host', () => {
  it('is shown within a second, and is not audited', async () => {
    const host = await loggedIn('press-1')
    expect((await seen(host)).status).toEqual({ state: 'ready' })
    const reply = await beat(host, by(host), { state: 'healthy', agentVersion: '1.3.0', message: 'fine' })
    expect([reply.status, reply.headers.audituid]).toEqual([204, undefined])
    await waitFor(async () => {
      expect((await seen(host)).status.health).toMatchObject({
        ...{ state: 'healthy', agentVersion: '1.3.0', message: 'fine' },
      })
    }, 5_000)
  })

  it('is that of the host itself: no other host, no user, no key of another host', async () => {
    const [host, other] = [await loggedIn('press-2'), await loggedIn('press-3')]
    expect((await beat(host, by(other))).status).toBe(404)
    expect((await beat(host, admin)).status).toBe(403)
    expect((await beat(host, {})).status).toBe(401)
    expect((await beat(host, by(host), { state: 'sleepy' })).body).toContain('state')
  })

  it('is missed after three minutes of silence, not before, and not after the clock was set', async () => {
    const [silent, loud] = [await loggedIn('silent'), await loggedIn('loud')]
    await beat(silent)
    await beat(loud)
    const look = () => platform.rooms.hosts.jobs.find(({ name }) => name === 'silent-hosts')?.run()
    await waitFor(async () => expect((await seen(silent)).status.health?.state).toBe('healthy'), 5_000)
    platform.clock.turn(2 * minuteMs)
    await look()
    expect((await seen(silent)).status.health?.state).toBe('healthy')
    await beat(loud)
    platform.clock.turn(minuteMs)
    await look()
    expect((await seen(silent)).status.health).toMatchObject({
      ...{ state: 'unhealthy', message: 'no heartbeat for three minutes' },
    })
    expect((await seen(loud)).status.health?.state).toBe('healthy')
    expect(await listed('status.health.state=unhealthyANDmetadata.name=silent')).toEqual(['silent'])
    await beat(silent)
    await waitFor(async () => expect((await seen(silent)).status.health?.state).toBe('healthy'), 5_000)
  })
})

describe('what a host reports of itself', () => {
  it('replaces what was known and can be filtered', async () => {
    const host = await loggedIn('mill-1')
    const device = {
      ...{ archType: 'arm64', cpu: { cores: 6 }, memory: { sizeInMB: 4_096 } },
      os: { family: 'debian', version: '12' },
    }
    expect((await ask('PUT', `/v1/edgehosts/${host.uid}`, by(host), facts(device))).status).toBe(204)
    const { spec } = await seen(host)
    expect(spec).toMatchObject({ device, service: { version: '1.3.0' }, host: { hostUid: host.hostUid } })
    expect(spec.host.hostIdentity.publicKey).toMatch(/^[\w-]{43}$/)
    for (const filter of [
      'spec.device.archType=arm64',
      'spec.device.cpu.cores=6',
      'spec.device.memory.sizeInMB=4096',
      'spec.device.os.family=debianANDspec.device.os.version=12',
      'spec.host.hostAddress=192.0.2.9',
      'spec.service.version=1.3.0',
    ])
      expect(await listed(filter), filter).toEqual(['mill-1'])
  })

  it('is the report of that host, and names no other one', async () => {
    const [host, other] = [await loggedIn('mill-2'), await loggedIn('mill-3')]
    const url = `/v1/edgehosts/${host.uid}`
    expect((await ask('PUT', url, by(other), facts({}))).status).toBe(404)
    expect((await ask('PUT', url, admin, facts({}))).status).toBe(403)
    const body = { spec: { device: {}, host: { hostAddress: '', hostUid: other.hostUid } } }
    const refused = await ask('PUT', url, by(host), body)
    expect([refused.status, refused.body]).toEqual([400, expect.stringContaining('spec.host.hostUid')])
  })
})

describe('labels and annotations of a host', () => {
  it('are set by an operator: labels are replaced, annotations stay; the name cannot be changed', async () => {
    const host = await loggedIn('saw-1')
    const url = `/v1/edgehosts/${host.uid}/meta`
    const set = async (metadata: object, headers = admin) => ask('PUT', url, headers, { metadata })
    expect((await set({ labels: { hall: 'b', line: '2' }, annotations: { a: '1' } })).status).toBe(204)
    expect((await set({ labels: { hall: 'c' }, annotations: { b: '2' } })).status).toBe(204)
    expect((await seen(host)).metadata).toMatchObject({
      ...{ labels: { hall: 'c' }, annotations: { a: '1', b: '2' } },
    })
    expect((await seen(host)).metadata.labels).toEqual({ hall: 'c' })
    const renamed = await set({ name: 'saw-2' })
    expect([renamed.status, renamed.body]).toEqual([400, expect.stringContaining('metadata.name')])
    const made = await set({ creationTimestamp: '2020-01-01T00:00:00Z' })
    expect([made.status, made.body]).toEqual([400, expect.stringContaining('metadata.creationTimestamp')])
    const viewer = await platform.signIn('viewer@plant.example', password)
    expect((await set({ labels: {} }, viewer)).status).toBe(403)
  })

  it('are those of the host until an operator has set some; then its report is refused with others', async () => {
    const host = await loggedIn('saw-4')
    const reportWith = (metadata: object) =>
      ask('PUT', `/v1/edgehosts/${host.uid}`, by(host), {
        ...{ metadata, spec: { device: {}, host: { hostAddress: '' } } },
      })
    expect((await reportWith({ labels: { hall: 'a' }, annotations: { by: 'host' } })).status).toBe(204)
    expect((await seen(host)).metadata).toMatchObject({ labels: { hall: 'a' }, annotations: { by: 'host' } })
    const set = { labels: { hall: '3' }, annotations: { by: 'operator' } }
    expect((await ask('PUT', `/v1/edgehosts/${host.uid}/meta`, admin, { metadata: set })).status).toBe(204)
    for (const [field, metadata] of [
      ['metadata.labels', { labels: { hall: '666' } }],
      ['metadata.labels', { labels: {} }],
      ['metadata.annotations', { annotations: { by: 'host' } }],
      ['metadata.annotations', { annotations: { by: '' } }],
    ] as const) {
      const refused = await reportWith(metadata)
      expect([refused.status, refused.body]).toEqual([400, expect.stringContaining(field)])
    }
    expect((await reportWith(set)).status).toBe(204)
    expect((await reportWith({})).status).toBe(204)
    expect((await seen(host)).metadata).toMatchObject(set)
  })

  it('come with the status as it was shown, whatever its health is by now, and with no other', async () => {
    const host = await loggedIn('saw-3')
    await beat(host)
    await waitFor(async () => expect((await seen(host)).status.health?.state).toBe('healthy'), 5_000)
    const { metadata, status } = await seen(host)
    const put = (changed: object) =>
      ask('PUT', `/v1/edgehosts/${host.uid}/meta`, admin, { metadata, status: { ...status, ...changed } })
    expect((await put({})).status).toBe(204)
    expect((await put({ health: { state: 'unhealthy' } })).status).toBe(204)
    const refused = await put({ state: 'in-use' })
    expect([refused.status, refused.body]).toEqual([400, expect.stringContaining('status cannot be set')])
  })
})

describe('the token of a host', () => {
  it('opens nothing else, and nothing once the host was removed', async () => {
    const host = await loggedIn('drill-1')
    for (const url of ['/v1/edgehosts', `/v1/edgehosts/${host.uid}`, '/v1/users', '/v1/projects'])
      expect((await ask('GET', url, by(host))).status, url).toBe(403)
    expect((await ask('DELETE', `/v1/edgehosts/${host.uid}`, by(host))).status).toBe(403)
    expect((await ask('DELETE', `/v1/edgehosts/${host.uid}`, admin)).status).toBe(204)
    expect((await beat(host)).status).toBe(401)
  })
})

describe('after a restart of the platform', () => {
  it('it is not known whether a host answers that did before, until it speaks or has been silent for three minutes', async () => {
    const stateDirectory = mkdtempSync(join(tmpdir(), 'heartbeats-'))
    onTestFinished(() => rm(stateDirectory, { recursive: true }))
    const start = () => createTestPlatform({ stateDirectory })
    const shown = ({ rooms: { hosts } }: Awaited<ReturnType<typeof start>>, uid: string) => {
      const silence = hosts.silenceOf(hosts.find(uid))
      const {
        status,
        reason,
        message = '',
      } = silenceCondition({
        ...{ hostName: 'press-9', silence, lastSeenAt: undefined },
      })
      return [status, reason, message === '' ? '' : 'why']
    }
    const first = await start()
    await first.addUser('root@plant.example', password, ['admin'])
    const headers = await first.signIn('root@plant.example', password)
    const made = await first.app.inject({
      ...{ method: 'POST', url: '/v1/edgehosts/tokens', headers, payload: { metadata: { name: 'hosts' } } },
    })
    const host = playEdgeHost(first)
    await host.register(made.json<{ token: string }>().token, 'press-9')
    const { uid } = host
    expect(shown(first, uid)).toEqual(['Unknown', 'NotSeenYet', ''])
    first.rooms.hosts.beat(uid, { state: 'healthy' })
    await waitFor(() => expect(shown(first, uid)).toEqual(['False', 'Seen', '']))
    await first.close()

    const second = await start()
    expect(shown(second, uid)).toEqual(['Unknown', 'NotSeenSinceStart', 'why'])
    second.rooms.hosts.beat(uid, { state: 'healthy' })
    expect(shown(second, uid)).toEqual(['False', 'Seen', ''])
    await second.close()

    const third = await start()
    third.clock.turn(3 * minuteMs)
    await third.rooms.hosts.jobs.find(({ name }) => name === 'silent-hosts')?.run()
    expect(shown(third, uid)).toEqual(['True', 'NoHeartbeat', 'why'])
    await third.close()
  })
})
