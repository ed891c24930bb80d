import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { reserveName } from '../../src/store/disk-reserve.ts'
import { playEdgeHost } from '../support/played-edge-host.ts'
import { createTestPlatform } from '../support/test-platform.ts'
import { waitFor } from '../support/wait-for.ts'

const password = 'a long password'
const MiB = 2 ** 20

// Only root may mount.
describe.skipIf(process.getuid?.() !== 0)('a platform whose disk is really full', () => {
  let folder: string
  let platform: Awaited<ReturnType<typeof createTestPlatform>>
  let admin: Readonly<Record<string, string>>
  const reserve = () => join(folder, reserveName)
  const filler = () => join(folder, 'filler')

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'edgeplatform-full-'))
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'edgeplatform-test', folder])
    platform = await createTestPlatform({ stateDirectory: folder })
    await platform.rooms.state.reserve.fill()
    await platform.addUser('root@plant.example', password, ['admin'])
    admin = await platform.signIn('root@plant.example', password)
  })
  afterEach(async () => {
    await platform.close()
    execFileSync('umount', [folder])
    rmSync(folder, { recursive: true })
  })

  /** To the last byte, as another program does. */
  function fillDisk() {
    const file = openSync(filler(), 'a')
    try {
      for (const size of [MiB, 4_096]) {
        const block = Buffer.alloc(size, 1)
        try {
          for (;;) writeSync(file, block)
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
        }
      }
    } finally {
      closeSync(file)
    }
    expect(statfsSync(folder).bavail).toBe(0)
  }

  const send = (
    method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    url: string,
    payload?: object,
    headers = admin,
  ) => platform.app.inject({ method, url, headers, ...(payload ? { payload } : {}) })

  async function makeToken(name: string) {
    const made = await send('POST', '/v1/edgehosts/tokens', { metadata: { name } })
    return made.json<{ token: string }>().token
  }

  it('deletes hosts, lets users and hosts in and takes heartbeats; other changes are a 507 until there is space', async () => {
    const token = await makeToken('hall')
    const [loud, quiet] = [playEdgeHost(platform), playEdgeHost(platform)]
    for (const host of [loud, quiet]) {
      await host.register(token)
      await host.logIn()
    }
    expect(statSync(reserve()).size).toBe(4 * MiB)
    fillDisk()

    const event = {
      ...{ reason: 'Noise', severity: 'Normal', message: 'again' },
      metadata: { uid: randomUUID(), creationTimestamp: '2026-11-01T08:00:00Z' },
    }
    const refused = [
      await send('POST', '/v1/projects', { metadata: { name: 'north' } }),
      await send('POST', '/v1/events/components/bulk', [event], { authorization: loud.token }),
      await send('PUT', `/v1/edgehosts/${quiet.uid}/meta`, { metadata: { labels: { hall: '3' } } }),
    ]
    expect(refused.map(({ statusCode }) => statusCode)).toEqual([507, 507, 507])
    expect(refused[0]?.json()).toMatchObject({
      code: 'InsufficientStorage',
      message: expect.stringContaining('reserve'),
    })
    expect(existsSync(reserve())).toBe(true)

    expect((await quiet.logIn()).status).toBe(200)
    const beat = { state: 'healthy', message: 'on a full disk' }
    const headers = { authorization: quiet.token }
    expect((await send('PATCH', `/v1/edgehosts/${quiet.uid}/health`, beat, headers)).statusCode).toBe(204)
    expect(existsSync(reserve())).toBe(false)
    const shown = async () =>
      (await platform.app.inject({ url: `/v1/edgehosts/${quiet.uid}`, headers: admin })).json<{
        status: { health?: { message: string } }
      }>().status.health?.message
    await waitFor(async () => expect(await shown()).toBe('on a full disk'))
    expect((await platform.signIn('root@plant.example', password)).authorization).toBeDefined()
    expect((await send('DELETE', `/v1/edgehosts/${loud.uid}`)).statusCode).toBe(204)
    expect((await platform.app.inject({ url: `/v1/edgehosts/${loud.uid}`, headers: admin })).statusCode).toBe(
      404,
    )
    // Given back, but not for other changes.
    expect((await send('POST', '/v1/projects', { metadata: { name: 'north' } })).statusCode).toBe(507)

    rmSync(filler())
    expect((await send('POST', '/v1/projects', { metadata: { name: 'north' } })).statusCode).toBe(201)
    await platform.rooms.state.reserve.fill()
    expect(statSync(reserve()).size).toBe(4 * MiB)
  })

  it('takes facts of a host that do not grow its record, and refuses those that do', async () => {
    const host = playEdgeHost(platform)
    await host.register(await makeToken('hall'))
    await host.logIn()
    const report = (kernel: string) =>
      send(
        'PUT',
        `/v1/edgehosts/${host.uid}`,
        {
          spec: {
            device: { archType: 'amd64', memory: { sizeInMB: 2_048 }, os: { kernel } },
            host: { hostAddress: '192.0.2.7' },
            service: { name: 'edgehostd', version: '1.2.3' },
          },
        },
        { authorization: host.token },
      )
    expect((await report('6.12.1')).statusCode).toBe(204)
    fillDisk()
    expect((await report('6.12.2')).statusCode).toBe(204)
    const grown = await report('6.12.2-of-another-make')
    expect([grown.statusCode, grown.json()]).toMatchObject([507, { code: 'InsufficientStorage' }])
    const shown = await platform.app.inject({ url: `/v1/edgehosts/${host.uid}`, headers: admin })
    expect(shown.json()).toMatchObject({ spec: { device: { os: { kernel: '6.12.2' } } } })
  })

  it('says that another program took what was given back, and has a part of it again as far as there is room', async () => {
    const { reserve: held, room } = platform.rooms.state
    const note = () => room.checks?.find(({ name }) => name === 'disk reserve held')?.holds()
    const gone = () =>
      platform.lines.filter(({ msg }) => String(msg).startsWith('the reserve of the disk is used up'))
    expect(note()).toBe(true)
    fillDisk()
    held.makeRoom()
    expect(note()).toBe(false)
    fillDisk()
    held.makeRoom()
    held.makeRoom()
    expect(gone()).toHaveLength(1)
    await held.fill()
    expect(existsSync(reserve())).toBe(false)

    execFileSync('truncate', [`--size=-${4 * MiB}`, filler()])
    await held.fill()
    expect(statSync(reserve()).size).toBe(2 * MiB)
    expect([note(), held.admits()]).toEqual([true, false])
    rmSync(filler())
    await held.fill()
    expect(statSync(reserve()).size).toBe(4 * MiB)
    expect(platform.lines).toContainEqual(
      expect.objectContaining({ msg: 'the disk of the state folder has its reserve again' }),
    )
  })

  it('serves many of them: hundreds of logins, deletions and their audit records fit into the reserve', async () => {
    const token = await makeToken('hall')
    const hosts = Array.from({ length: 100 }, () => playEdgeHost(platform))
    for (const host of hosts) await host.register(token)
    fillDisk()
    for (const host of hosts) expect((await host.logIn()).status).toBe(200)
    for (const host of hosts) expect((await send('DELETE', `/v1/edgehosts/${host.uid}`)).statusCode).toBe(204)
    for (let round = 0; round < 50; round += 1) await platform.signIn('root@plant.example', password)
    expect(platform.rooms.audit.unwritten()).toBe(0)
  })

  it('starts again, with an API key that deletes', async () => {
    const made = await send('POST', '/v1/apiKeys', {
      metadata: { name: 'broom' },
      spec: { expiry: new Date(platform.clock.now() + 86_400_000).toISOString() },
    })
    const headers = { apikey: made.json<{ apiKey: string }>().apiKey }
    const host = playEdgeHost(platform)
    await host.register(await makeToken('hall'))
    await platform.close()
    fillDisk()
    platform = await createTestPlatform({ stateDirectory: folder })
    expect((await platform.app.inject({ url: '/v1/edgehosts', headers })).statusCode).toBe(200)
    expect((await send('DELETE', `/v1/edgehosts/${host.uid}`, undefined, headers)).statusCode).toBe(204)
    expect(platform.rooms.state.reserve.admits()).toBe(false)
  })
})

it('an audit trail that grows beyond its size is trimmed by a job of every ten seconds, once it has grown by hundreds of records', async () => {
  const platform = await createTestPlatform({ flags: ['--audit.limitBytes=1'] })
  try {
    const { audit } = platform.rooms
    const job = audit.jobs?.find(({ name }) => name === 'audit trail size')
    expect(job?.schedule).toBe('*/10 * * * * *')
    const record = (count: number) => {
      for (let index = 0; index < count; index += 1)
        audit.record({ action: 'update', kind: 'project', message: 'x'.repeat(500) })
    }
    record(200)
    await job?.run()
    expect(audit.count()).toBeGreaterThan(200)
    record(400)
    await job?.run()
    expect(audit.count()).toBeLessThan(200)
    expect(await audit.access.verify(undefined)).toMatchObject({ isIntact: true })
  } finally {
    await platform.close()
  }
})
