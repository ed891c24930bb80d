import { describe, expect, it } from 'vitest'
import type { Statfs } from '../../src/host/disks.ts'
import type { HostFiles } from '../../src/host/files.ts'
import { createSnapshot, type SnapshotOptions } from '../../src/host/snapshot.ts'
import { openDatabase } from '../../src/store/database.ts'
import { clockAt, programs, recordingLog } from '../fixtures/host/edges.ts'
import { machine } from '../fixtures/host/tree.ts'

const gib = 2 ** 30
const usage =
  (usedGib: number): Statfs =>
  async () => ({
    bsize: gib,
    blocks: 24,
    bfree: 24 - usedGib,
    bavail: 22 - usedGib,
  })

/** A board whose parts a test can change: files in front of the fixture, figures, and the time. */
function board(options: Partial<SnapshotOptions> = {}) {
  const { log, lines } = recordingLog()
  const files = machine('single-board')
  const state = {
    now: 1_000,
    used: 9,
    addresses: ['192.0.2.7'],
    /** Text of a file, or a promise of it. */
    files: new Map<string, string | Promise<string>>(),
    reads: [] as string[],
  }
  const overlaid: HostFiles = {
    ...files,
    text: async (path) => {
      state.reads.push(path)
      return state.files.get(path) ?? files.text(path)
    },
  }
  const database = options.database ?? openDatabase(':memory:', log)
  const build = () =>
    createSnapshot({
      files: overlaid,
      runner: programs().runner,
      clock: { now: () => state.now, monotonic: () => state.now },
      log,
      database,
      config: { mode: 'airgap' },
      agentVersion: '0.1.0',
      statfs: (path) => usage(state.used)(path),
      ipv4Addresses: () =>
        new Map([['eth0', state.addresses.map((ip) => ({ ip, subnet: '255.255.255.0' }))]]),
      totalMemory: async () => 7930.5 * 2 ** 20,
      arch: 'arm64',
      ...options,
    })
  return { build, state, lines }
}

// eslint-disable-next-line @typescript-eslint/no-unsafe-return -- the tests look at what is there
const parse = (body: string) => JSON.parse(body)
const hostnameFile = '/proc/sys/kernel/hostname'

describe('reply', () => {
  it('is the whole shape, spelled as the API spells it', async () => {
    const snapshot = await board().build()
    expect(snapshot.current()).toBeUndefined()
    await snapshot.refresh('all')
    expect(parse(snapshot.current()!.body)).toEqual({
      metadata: {
        creationTimestamp: '1970-01-01T00:00:01.000Z',
        id: 'edge-ce16a10221d81f285f28c81b01ad7195',
        lastModifiedTimestamp: '1970-01-01T00:00:01.000Z',
        name: 'edge-ce16a10221d81f285f28c81b01ad7195',
      },
      spec: {
        connectionMode: 'airgap',
        hardwareSpec: {
          archType: 'arm64',
          cpu: { cores: 4 },
          disks: [
            {
              controller: 'MMC',
              size: 29,
              partitions: [
                { fileSystemType: 'ext4', freeSpace: 13, mountPoint: '/', totalSpace: 24, usedSpace: 9 },
              ],
            },
          ],
          gpus: [],
          memory: { sizeInMB: 7930 },
          os: { family: 'debian', version: '12' },
        },
        managementMode: 'local',
        networkInfo: [
          {
            dns: [],
            ip: '192.0.2.7',
            isDefault: false,
            macAddr: 'dc:a6:32:00:00:01',
            nicName: 'eth0',
            subnet: '255.255.255.0',
          },
          {
            dns: ['2001:db8::53'],
            gateway: 'fe80::1',
            ip: '2001:db8::10',
            isDefault: true,
            macAddr: 'dc:a6:32:00:00:02',
            nicName: 'wlan0',
            subnet: '64',
          },
        ],
      },
      status: {
        agentVersion: '0.1.0',
        configurationStatus: 'pending',
        dns: { nameservers: ['2001:db8::53'], options: [], searchDomains: [] },
        hostName: 'board',
        ntp: { fallbackNtpServers: [], ntpServers: [] },
        registrationStatus: 'not applicable',
      },
    })
  })

  it('names a connected host as one', async () => {
    const snapshot = await board({ config: { id: 'kiosk-7', name: 'Kiosk', mode: 'connected' } }).build()
    await snapshot.refresh('all')
    const { metadata, spec, status } = parse(snapshot.current()!.body)
    expect(metadata).toMatchObject({ id: 'kiosk-7', name: 'Kiosk' })
    expect(spec).toMatchObject({ connectionMode: 'connected', managementMode: 'central' })
    expect(status.registrationStatus).toBe('pending')
  })

  it('is the same buffer with the same tag until something changes', async () => {
    const { build, state } = board()
    const snapshot = await build()
    await snapshot.refresh('all')
    const first = snapshot.current()!
    await snapshot.refresh('all')
    expect(snapshot.current()).toBe(first)
    state.files.set(hostnameFile, 'renamed\n')
    await snapshot.refresh('seconds')
    expect(snapshot.current()!.etag).not.toBe(first.etag)
    expect(first.etag).toMatch(/^"[0-9a-f]{32}"$/)
    expect(snapshot.hostName()).toBe('renamed')
  })
})

describe('time of the last change', () => {
  it('stays when only used and free space change, while body and tag follow', async () => {
    const { build, state } = board()
    const snapshot = await build()
    await snapshot.refresh('all')
    const first = snapshot.current()!
    state.now = 5_000
    state.used = 12
    await snapshot.refresh('seconds')
    const second = snapshot.current()!
    expect(parse(second.body).spec.hardwareSpec.disks[0].partitions[0].usedSpace).toBe(12)
    expect(second.etag).not.toBe(first.etag)
    expect(second.lastModified).toEqual(first.lastModified)
  })

  it('survives a restart and moves with the facts', async () => {
    const { build, state } = board()
    await (await build()).refresh('all')
    state.now = 60_000
    const snapshot = await build()
    await snapshot.refresh('all')
    expect(snapshot.current()!.lastModified).toEqual(new Date(1_000))
    state.files.set(hostnameFile, 'renamed\n')
    await snapshot.refresh('all')
    expect(parse(snapshot.current()!.body).metadata).toMatchObject({
      creationTimestamp: '1970-01-01T00:00:01.000Z',
      lastModifiedTimestamp: '1970-01-01T00:01:00.000Z',
    })
  })
})

describe('refresh', () => {
  it('of the seconds class leaves the minutes class alone', async () => {
    const { build, state } = board()
    const snapshot = await build()
    await snapshot.refresh('all')
    state.reads.length = 0
    await snapshot.refresh('seconds')
    expect(state.reads).toContain('/proc/net/route')
    expect(state.reads).not.toContain('/sys/devices/system/cpu/online')
    state.reads.length = 0
    await snapshot.refresh('minutes')
    expect(state.reads).toContain('/sys/devices/system/cpu/online')
    expect(state.reads).not.toContain('/proc/net/route')
  })

  it('is shared by those who ask while one is running, and sees what they changed before', async () => {
    const { build, state } = board()
    const snapshot = await build()
    const first = snapshot.refresh('all')
    state.files.set(hostnameFile, 'renamed\n')
    const waiting = Array.from({ length: 50 }, () => snapshot.refresh('all'))
    await Promise.all([first, ...waiting])
    expect(snapshot.hostName()).toBe('renamed')
    expect(state.reads.filter((path) => path === hostnameFile)).toHaveLength(2)
  })
})

describe('a fact that cannot be read', () => {
  it('keeps its last value, is a condition, and is logged once until it comes back', async () => {
    const { build, state, lines } = board()
    const snapshot = await build()
    await snapshot.refresh('all')
    state.files.set('/sys/devices/system/cpu/online', Promise.reject(new Error('EIO: i/o error')))
    await snapshot.refresh('all')
    await snapshot.refresh('all')
    const { spec, status } = parse(snapshot.current()!.body)
    expect(spec.hardwareSpec.cpu).toEqual({ cores: 4 })
    expect(status.conditions).toEqual([
      { type: 'cores', status: 'False', reason: 'CannotBeRead', message: 'EIO: i/o error' },
    ])
    expect(lines.filter(({ level, fact }) => level === 40 && fact === 'cores')).toHaveLength(1)
    state.files.delete('/sys/devices/system/cpu/online')
    await snapshot.refresh('all')
    expect(parse(snapshot.current()!.body).status.conditions).toBeUndefined()
    expect(lines.filter(({ level, fact }) => level === 30 && fact === 'cores')).toHaveLength(1)
  })

  it('is absent when it never could be read', async () => {
    const snapshot = await board({ totalMemory: () => Promise.reject(new Error('no meminfo')) }).build()
    await snapshot.refresh('all')
    expect(parse(snapshot.current()!.body).spec.hardwareSpec.memory).toEqual({})
  })

  it('that hangs delays nothing but itself and is not started a second time', async () => {
    let asked = 0
    const answer = Promise.withResolvers<Awaited<ReturnType<Statfs>>>()
    const { build } = board({
      deadlineMs: 20,
      statfs: () => {
        asked += 1
        return answer.promise
      },
    })
    const snapshot = await build()
    await snapshot.refresh('all')
    await snapshot.refresh('all')
    const hanging = parse(snapshot.current()!.body)
    expect(asked).toBe(1)
    expect(hanging.spec.hardwareSpec.cpu).toEqual({ cores: 4 })
    expect(hanging.status.conditions).toMatchObject([{ type: 'disks', message: 'no answer within 20 ms' }])
    answer.resolve(await usage(9)('/'))
    await snapshot.refresh('all')
    expect(parse(snapshot.current()!.body).spec.hardwareSpec.disks).toHaveLength(1)
  })
})

it('tells who listens when addresses come or go, and only then', async () => {
  const { build, state } = board()
  const snapshot = await build()
  const heard: (readonly string[])[] = []
  const end = snapshot.onAddressChange((addresses) => heard.push(addresses))
  await snapshot.refresh('all')
  await snapshot.refresh('all')
  state.addresses = ['192.0.2.7', '192.0.2.8']
  await snapshot.refresh('seconds')
  end()
  state.addresses = []
  await snapshot.refresh('seconds')
  expect(heard).toEqual([
    ['192.0.2.7', '2001:db8::10'],
    ['192.0.2.7', '192.0.2.8', '2001:db8::10'],
  ])
  expect(snapshot.addresses()).toEqual(['2001:db8::10'])
})

it('has its identity before the first refresh', async () => {
  const { log } = recordingLog()
  const snapshot = await board({ clock: clockAt(5), database: openDatabase(':memory:', log) }).build()
  expect(snapshot.id()).toBe('edge-ce16a10221d81f285f28c81b01ad7195')
})
