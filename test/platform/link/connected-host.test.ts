import { cp, mkdtemp, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { memory, startLinkedHost, type LinkedHostOptions } from '../../support/linked-host.ts'
import { createTestPlatform } from '../../support/test-platform.ts'
import { createTurningClock, dayMs, minuteMs } from '../../support/turning-clock.ts'

const password = 'a long password'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let made = 0

beforeAll(async () => {
  platform = await createTestPlatform()
  await platform.addUser('root@plant.example', password, ['admin'])
})
afterAll(() => platform.close())

async function ask(
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  url: string,
  payload?: object,
): Promise<unknown> {
  const headers = await platform.signIn('root@plant.example', password)
  const reply = await platform.app.inject({ method, url, headers, ...(payload ? { payload } : {}) })
  return reply.body === '' || reply.body === 'null' ? undefined : reply.json<unknown>()
}

const makeToken = (defaultProjectUid = '') => {
  const metadata = { name: `token ${(made += 1)}` }
  return platform.rooms.hosts.tokens.create({ metadata, spec: { defaultProjectUid } }).token
}
function deviceOf(uid: string) {
  const { hosts } = platform.rooms
  // Heartbeats are written once a second.
  hosts.stop()
  return hosts.toDevice(hosts.find(uid)!)
}
const eventsOf = async (uid: string) =>
  (await ask('GET', `/v1/events/components?filters=source.hostUid=${uid}`)) as {
    items: { reason: string; message: string; severity: string; metadata: { uid: string } }[]
    listmeta: { count: number }
  }

/** A host that is registered and has sent a heartbeat. */
async function connected(options: LinkedHostOptions = {}) {
  const id = `edge-${(made += 1)}`
  const host = await startLinkedHost(platform, { hostId: id, name: id, token: makeToken(), ...options })
  await host.until(() => host.link().isConnected)
  return { ...host, id, uid: host.link().edgeHostUid! }
}

describe('a host with a registration token', () => {
  it('registers, logs in, tells its health and what it is, and removes the token', async () => {
    const host = await connected()
    const device = deviceOf(host.uid)
    expect(device.metadata.name).toBe(host.id)
    expect(device.spec.device).toMatchObject({ archType: 'arm64', hostState: 'registration' })
    expect(device.spec.device.nics?.map(({ ip }) => ip)).toContain('192.0.2.7')
    expect(device.spec.host).toMatchObject({ hostUid: host.id, hostAddress: '2001:db8::10' })
    await expect(stat(host.tokenFile)).rejects.toMatchObject({ code: 'ENOENT' })
    expect(await host.registration()).toMatchObject({ edgeHostUid: host.uid, generation: 1 })
    const { mode } = await stat(join(host.stateDirectory, 'platform/host-key.pem'))
    expect(mode & 0o777).toBe(0o600)
    expect(host.link()).toMatchObject({ registrationStatus: 'registered', events: { waiting: 0 } })
    expect(host.link()).not.toHaveProperty('projectName')
    expect(host.entries).toMatchObject([{ action: 'create', kind: 'platformRegistration' }])
    // The registration has reported the facts already.
    expect(host.calls.filter(({ method }) => method === 'PUT')).toEqual([])
    expect((await eventsOf(host.uid)).items.map(({ reason }) => reason)).toEqual(['HostStarted'])
    await host.close()
  })

  it('sends a heartbeat a minute at a second of its own, and logs in anew before its token ends', async () => {
    const host = await connected()
    const from = host.calls.length
    const begin = host.clock.monotonic()
    await host.until(() => host.clock.monotonic() - begin >= 60 * minuteMs)
    const beats = host.calls.slice(from).filter(({ path }) => path.endsWith('/health'))
    expect(beats.length).toBeGreaterThanOrEqual(60)
    expect(beats.length).toBeLessThanOrEqual(61)
    expect(beats.every(({ status }) => status === 204)).toBe(true)
    const logins = host.calls.slice(from).filter(({ path }) => path.endsWith('/login'))
    expect(logins.filter(({ status }) => status === 200)).toHaveLength(4)
    expect(deviceOf(host.uid).status.isDuplicate).toBeUndefined()
    await host.close()
  })

  it('tells a change of what it is with the next heartbeat, and no change of a few bytes of a disk', async () => {
    const host = await connected()
    const puts = () => host.calls.filter(({ method }) => method === 'PUT').length
    host.change((facts) => ({ ...facts, status: { ...facts.status, agentVersion: '1.3.0' } }))
    await host.until(() => puts() === 1)
    expect(deviceOf(host.uid).spec.service.version).toBe('1.3.0')
    host.change((facts) => ({
      ...facts,
      spec: {
        ...facts.spec,
        hardwareSpec: {
          ...facts.spec.hardwareSpec,
          disks: facts.spec.hardwareSpec.disks.map((disk) => ({
            ...disk,
            partitions: disk.partitions.map((each) => ({
              ...each,
              totalSpace: 100,
              usedSpace: 41,
              freeSpace: 59,
            })),
          })),
        },
      },
    }))
    await host.until(() => puts() === 2)
    host.change((facts) => ({
      ...facts,
      spec: {
        ...facts.spec,
        hardwareSpec: {
          ...facts.spec.hardwareSpec,
          disks: facts.spec.hardwareSpec.disks.map((disk) => ({
            ...disk,
            partitions: disk.partitions.map((each) => ({ ...each, usedSpace: 42, freeSpace: 58 })),
          })),
        },
      },
    }))
    for (let turn = 0; turn < 5; turn++) await host.step()
    await host.rest()
    expect(puts()).toBe(2)
    await host.close()
  })

  it('tells again after its next login what was refused, as by a proxy', async () => {
    const host = await connected()
    let refusals = 0
    host.through(async (call, pass) => {
      if (call.method !== 'PUT') return pass()
      refusals += 1
      const cause = { kind: 'foreign', message: 'too large' } as const
      return refusals === 1 ? { status: 413, cause } : pass()
    })
    host.change((facts) => ({ ...facts, status: { ...facts.status, agentVersion: '1.3.0' } }))
    await host.until(() => refusals === 1)
    await host.step()
    expect(refusals).toBe(1)
    await host.until(() => refusals === 2)
    expect(deviceOf(host.uid).spec.service.version).toBe('1.3.0')
    await host.close()
  })

  it('says that a check fails, by its health and by an event', async () => {
    const host = await connected()
    host.fail('jobs')
    await host.until(
      () => deviceOf(host.uid).status.health?.message === 'checks fail: jobs' || host.calls.length > 100,
    )
    host.fail()
    await host.step()
    await host.step()
    await host.rest()
    const reasons = (await eventsOf(host.uid)).items.map(({ reason }) => reason)
    expect(reasons).toContain('HostNotReady')
    expect(reasons).toContain('HostReady')
    await host.close()
  })

  it('takes its id as its name where another host of the project has the name', async () => {
    const project = { metadata: { name: 'north' } }
    const { uid: projectUid } = (await ask('POST', '/v1/projects', project)) as { uid: string }
    const first = await connected({ name: 'press', token: makeToken(projectUid) })
    const second = await connected({ name: 'press', token: makeToken(projectUid) })
    expect(first.link()).toMatchObject({ projectUid, projectName: 'north' })
    expect(deviceOf(first.uid).metadata.name).toBe('press')
    expect(deviceOf(second.uid).metadata.name).toBe(second.id)
    await first.close()
    await second.close()
  })

  it.each([30 * minuteMs, -30 * 365 * dayMs, 30 * 365 * dayMs])(
    'connects with a clock that is off by %d ms',
    async (off) => {
      const host = await connected({ clock: createTurningClock(Date.now() + off) })
      expect(deviceOf(host.uid).status.health?.state).toBe('healthy')
      expect((await eventsOf(host.uid)).items).toHaveLength(1)
      await host.close()
    },
  )
})

describe('a host that is cut off', () => {
  it('is the same host after a power cut before or after any of its calls', async () => {
    // The calls of a first connection: registration, both halves of the login, heartbeat, events.
    for (let cut = 0; cut < 5; cut++)
      for (const isReplyLost of [false, true]) {
        const id = `edge-${(made += 1)}`
        const options = { hostId: id, name: id, token: makeToken() }
        const before = await startLinkedHost(platform, options)
        let count = 0
        const reached = Promise.withResolvers<undefined>()
        before.through(async (call, pass) => {
          if (count++ !== cut) return pass()
          if (isReplyLost) await pass()
          reached.resolve(undefined)
          // The host is off before it learns anything.
          return new Promise(() => undefined)
        })
        await reached.promise
        const stateDirectory = await mkdtemp(join(memory, 'linked-host-'))
        await cp(before.stateDirectory, stateDirectory, { recursive: true })
        const after = await startLinkedHost(platform, { hostId: id, name: id, stateDirectory })
        await after.until(() => after.link().isConnected)
        const hosts = (await ask('GET', `/v1/edgehosts?filters=spec.host.hostUid=${id}`)) as {
          listmeta: { count: number }
        }
        const what = `call ${cut}, ${isReplyLost ? 'reply lost' : 'not sent'}`
        expect(hosts.listmeta.count, what).toBe(1)
        expect(deviceOf(after.link().edgeHostUid!).status.isDuplicate, what).toBeUndefined()
        const { items } = await eventsOf(after.link().edgeHostUid!)
        expect(new Set(items.map(({ metadata }) => metadata.uid)).size, what).toBe(items.length)
        await after.close()
      }
  })

  it('keeps a month of events in bounds: informational ones give way, the gap is told, warnings all arrive', async () => {
    const host = await connected()
    host.cut()
    const begin = host.clock.monotonic()
    let attempts = 0
    for (let added = 0; host.clock.monotonic() - begin < 30 * dayMs; attempts++) {
      await host.step()
      // The machine sleeps in between: the test need not live through each minute.
      host.clock.turn(15 * minuteMs)
      const due = Math.floor((host.clock.monotonic() - begin) / (3.5 * minuteMs))
      for (; added < due; added++)
        host.uplink.report({
          severity: added % 1_000 === 0 ? 'Warning' : 'Normal',
          ...{ reason: 'SomethingHappened', message: `number ${added}`, component: 'test' },
        })
    }
    await host.rest()
    expect(attempts).toBeLessThan(30 * 24 * 4)
    const { events, cause, isConnected } = host.link()
    expect([isConnected, cause?.kind]).toEqual([false, 'route'])
    expect(events.waiting).toBeLessThanOrEqual(10_000)
    expect(events.dropped).toBeGreaterThan(2_000)
    // A healthy journal: one line for the month.
    expect(host.lines.filter(({ msg }) => String(msg).startsWith('not connected'))).toHaveLength(1)
    host.mend()
    await host.until(() => host.link().isConnected && host.link().events.waiting === 0)
    const { listmeta } = await eventsOf(host.uid)
    expect(listmeta.count).toBeGreaterThanOrEqual(10_000)
    const warnings = (await ask(
      'GET',
      `/v1/events/components?filters=source.hostUid=${host.uid}ANDseverity=Warning`,
    )) as { items: { reason: string; message: string }[]; listmeta: { count: number } }
    expect(warnings.items.filter(({ reason }) => reason === 'SomethingHappened')).toHaveLength(13)
    expect(warnings.items.find(({ reason }) => reason === 'EventsDropped')?.message).toMatch(
      /^\d{4} events of this host from .* gave way/,
    )
    expect(warnings.items.find(({ reason }) => reason === 'PlatformUnreachable')?.message).toMatch(
      /for 43\d{3} minutes, from /,
    )
    await host.close()
  })

  it('is unhealthy on the platform after three minutes, and healthy with its next heartbeat', async () => {
    const host = await connected()
    const look = platform.rooms.hosts.jobs.find(({ name }) => name === 'silent-hosts')!
    expect(deviceOf(host.uid).status.health?.state).toBe('healthy')
    platform.clock.turn(3 * minuteMs)
    await look.run()
    expect(deviceOf(host.uid).status.health?.state).toBe('unhealthy')
    await host.step()
    await host.rest()
    expect(deviceOf(host.uid).status.health?.state).toBe('healthy')
    await host.close()
  })

  it('reports three minutes without the platform, counted from its last heartbeat as the platform counts them', async () => {
    // The attempts are 60, 61, 63, 67, 75, 91, 123 and 183 seconds after it.
    vi.spyOn(Math, 'random').mockReturnValue(0.999)
    const host = await connected()
    const begin = host.clock.monotonic()
    host.cut()
    while (host.clock.monotonic() - begin < 2 * minuteMs) await host.step()
    await host.rest()
    host.mend()
    await host.until(() => host.link().isConnected && host.link().events.waiting === 0)
    expect(host.clock.monotonic() - begin).toBeLessThan(200_000)
    const { items } = await eventsOf(host.uid)
    expect(items.find(({ reason }) => reason === 'PlatformUnreachable')?.message).toMatch(
      /did not reach the platform for 3 minutes, from /,
    )
    await host.close()
  })

  it('obeys Retry-After', async () => {
    const host = await connected()
    host.through(() =>
      Promise.resolve({ status: 503, retryAfter: '300', cause: { kind: 'busy', message: 'later' } }),
    )
    await host.until(() => !host.link().isConnected)
    const waited = await host.step()
    expect(waited).toBeGreaterThanOrEqual(300_000)
    expect(waited).toBeLessThan(302_000)
    host.mend()
    await host.until(() => host.link().isConnected)
    await host.close()
  })
})

describe('a host that the platform refuses', () => {
  it('that was removed says so, asks once an hour, and connects again with a new token', async () => {
    const host = await connected()
    await ask('DELETE', `/v1/edgehosts/${host.uid}`)
    await host.until(() => host.link().registrationStatus === 'removed')
    expect(host.link().cause?.kind).toBe('removed')
    expect(host.uplink.inHostInfo()).toMatchObject({
      registrationStatus: 'removed',
      problem: { reason: 'Removed' },
    })
    expect(host.uplink.consoleLine()).toBe('https://platform.example: this host was removed there')
    expect(await host.step()).toBe(3_600_000)
    const again = await startLinkedHost(platform, {
      ...{ hostId: host.id, name: host.id, stateDirectory: host.stateDirectory, token: makeToken() },
    })
    await again.until(() => again.link().isConnected)
    expect(again.link().edgeHostUid).not.toBe(host.uid)
    expect(again.link().registrationStatus).toBe('registered')
    await host.end()
    await again.close()
  })

  it('of which a copy runs is refused like the copy, until an administrator lets one in', async () => {
    const host = await connected()
    const stateDirectory = await mkdtemp(join(memory, 'linked-host-'))
    await cp(host.stateDirectory, stateDirectory, { recursive: true })
    const copy = await startLinkedHost(platform, { hostId: host.id, name: host.id, stateDirectory })
    await copy.until(() => copy.link().isConnected || copy.link().cause !== undefined)
    await host.until(() => host.link().registrationStatus === 'duplicate')
    await copy.until(() => copy.link().registrationStatus === 'duplicate')
    expect(deviceOf(host.uid).status.isDuplicate).toBe(true)
    expect(host.link().cause?.message).toMatch(/exists twice/)
    await copy.end()
    await ask('PUT', `/v1/edgehosts/${host.uid}/duplicate`, { action: 'acceptNext' })
    await host.until(() => host.link().isConnected)
    expect(deviceOf(host.uid).status.isDuplicate).toBeUndefined()
    await host.close()
  })

  it('without a token says how to connect, and with one that is unknown says that it was refused', async () => {
    const id = `edge-${(made += 1)}`
    const host = await startLinkedHost(platform, { hostId: id, name: id })
    await host.until(() => host.link().cause !== undefined)
    expect(host.link()).toMatchObject({
      registrationStatus: 'pending',
      cause: {
        kind: 'tokenRefused',
        message: expect.stringContaining('edgehostctl platform connect') as string,
      },
    })
    await host.close()
    const other = await startLinkedHost(platform, { hostId: id, name: id, token: 'wrong' })
    await other.until(() => other.link().cause !== undefined)
    expect(other.link().cause?.message).toMatch(/refused the registration token/)
    await expect(stat(other.tokenFile)).resolves.toBeDefined()
    await other.close()
  })
})

describe('a platform that was restored from a backup', () => {
  it('of before the last logins takes the newer generation of the host, and gets its facts again', async () => {
    const host = await connected()
    const backup = await mkdtemp(join(memory, 'edgeplatform-'))
    platform.rooms.hosts.stop()
    platform.rooms.state.database.sql.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    await cp(platform.stateDirectory, backup, { recursive: true })
    host.change((facts) => ({ ...facts, status: { ...facts.status, agentVersion: '2.0.0' } }))
    const begin = host.clock.monotonic()
    await host.until(() => host.clock.monotonic() - begin > 45 * minuteMs)
    const restored = await createTestPlatform({ stateDirectory: backup })
    const { hosts } = restored.rooms
    const known = hosts.find(host.uid)
    expect(known?.reported.service.version).toBe('0.1.0')
    host.use(restored)
    await host.until(() => hosts.find(host.uid)?.reported.service.version === '2.0.0')
    expect(host.link().isConnected).toBe(true)
    expect(hosts.find(host.uid)?.isTwice).toBe(false)
    await host.close()
    await restored.close()
  })

  it('of before the registration does not know the host, which says so', async () => {
    const host = await connected()
    const empty = await createTestPlatform()
    host.use(empty)
    await host.until(() => host.link().cause?.kind === 'unknownHost')
    expect(host.link().cause?.message).toMatch(/restored from an older backup/)
    host.use(platform)
    await host.until(() => host.link().isConnected)
    await host.close()
    await empty.close()
  })
})

it('a host that was at another platform meanwhile is no second one when it comes back', async () => {
  const other = await createTestPlatform()
  const stateDirectory = await mkdtemp(join(memory, 'moved-host-'))
  try {
    for (const [at, where] of [platform, other, platform, other].entries()) {
      const { token } = where.rooms.hosts.tokens.create({ metadata: { name: `moved ${at}` } })
      const host = await startLinkedHost(where, { hostId: 'moved', stateDirectory, token })
      try {
        await host.rest()
        expect(host.link(), `at ${at}`).toMatchObject({ isConnected: true })
      } finally {
        await host.end()
      }
    }
    // Where it is not known, it does not show the record of the platform before.
    const third = await createTestPlatform()
    const stranger = await startLinkedHost(third, { hostId: 'moved', stateDirectory, token: 'wrong' })
    await stranger.until(() => stranger.link().cause !== undefined)
    expect(stranger.link()).toMatchObject({ registrationStatus: 'pending', cause: { kind: 'tokenRefused' } })
    expect(stranger.link()).not.toHaveProperty('edgeHostUid')
    await stranger.end()
    await third.close()
  } finally {
    await other.close()
    await rm(stateDirectory, { recursive: true, force: true })
  }
})
