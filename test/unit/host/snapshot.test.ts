import { describe, expect, it } from 'vitest'
import { outOfCluster } from '../../../src/host/document.ts'
import type { HostFiles } from '../../../src/host/files.ts'
import type { EdgeHostInfo } from '../../../src/host/schemas.ts'
import { createSnapshot, type SnapshotOptions, type SnapshotReply } from '../../../src/host/snapshot.ts'
import { openHostRecord, type HostRecordOptions } from '../../../src/host/identity/host-record.ts'
import { openDatabase, type Database } from '../../support/open-database.ts'
import { programs, recordingLog } from '../../fixtures/host/edges.ts'
import { machine } from '../../fixtures/host/tree.ts'
import { waitFor } from '../../support/wait-for.ts'

const identitySources = ['product-uuid', 'machine-id']
/** The figures of a file system of 24 GiB, 2 of them reserved for root. */
const usage = (usedGib: number) => `${2 ** 30} 24 ${24 - usedGib} ${22 - usedGib}\n`

interface BoardOptions extends Partial<SnapshotOptions> {
  readonly settings?: HostRecordOptions['settings']
  readonly database?: Database
}

/** A board whose parts a test can change: files in front of the fixture, figures, and the time. */
function board({ settings = { identitySources }, ...options }: BoardOptions = {}) {
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
  const { runner } = programs({ stat: () => usage(state.used) })
  const runners = { runner, privileged: runner }
  const database = options.database ?? openDatabase(':memory:', log)
  const clock = { now: () => state.now, monotonic: () => state.now }
  const build = async () =>
    createSnapshot({
      files: overlaid,
      ...runners,
      clock,
      log,
      record: await openHostRecord({ settings, files: overlaid, database, clock, log }),
      config: { mode: 'airgap' },
      agentVersion: '0.1.0',
      ipv4Addresses: () =>
        new Map([['eth0', state.addresses.map((ip) => ({ ip, subnet: '255.255.255.0' }))]]),
      arch: 'arm64',
      ...options,
    })
  return { build, state, lines }
}

// eslint-disable-next-line @typescript-eslint/no-unsafe-return -- the tests look at what is there
const parse = (body: string) => JSON.parse(body)
const modifiedOf = ({ body }: SnapshotReply) => (parse(body) as EdgeHostInfo).metadata.lastModifiedTimestamp
const hostnameFile = '/proc/sys/kernel/hostname'

describe('reply', () => {
  it('a reading that ends after the stop asks the cluster for nothing: the database may be closed', async () => {
    let isStopped = false
    const asked: boolean[] = []
    const { build } = board({
      cluster: () => {
        asked.push(isStopped)
        return outOfCluster
      },
    })
    const snapshot = await build()
    await snapshot.refresh('all')
    const reading = snapshot.refresh('all')
    snapshot.stop()
    isStopped = true
    await reading
    expect(asked).toEqual([false])
  })

  it('the reply has all fields, spelled as in the API', async () => {
    const snapshot = await board().build()
    expect(snapshot.current()).toBeUndefined()
    await snapshot.refresh('all')
    expect(parse(snapshot.current()!.body)).toEqual({
      metadata: {
        creationTimestamp: '1970-01-01T00:00:01.000Z',
        id: 'edge-ce16a10221d81f285f28c81b01ad7195',
        labels: {},
        lastModifiedTimestamp: '1970-01-01T00:00:01.000Z',
        name: 'edge-ce16a10221d81f285f28c81b01ad7195',
        tags: {},
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
        hostInfo: { hostState: 'registration', hostType: 'agent-mode' },
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
        nodeRole: 'unknown',
      },
      status: {
        agentVersion: '0.1.0',
        configurationStatus: 'pending',
        isClusterPhase: false,
        dns: { nameservers: ['2001:db8::53'], options: [], searchDomains: [] },
        hostName: 'board',
        ntp: { fallbackNtpServers: [], ntpServers: [] },
        registrationStatus: 'not applicable',
      },
    })
  })

  it('the reply of a connected host says so', async () => {
    const snapshot = await board({
      settings: { identitySources, id: 'kiosk-7' },
      config: { name: 'Kiosk', mode: 'connected' },
      platform: () => ({
        ...{ url: 'https://platform.example', registrationStatus: 'removed' },
        problem: { reason: 'Removed', message: 'this host was removed' },
      }),
    }).build()
    await snapshot.refresh('all')
    const { metadata, spec, status } = parse(snapshot.current()!.body)
    expect(metadata).toMatchObject({ id: 'kiosk-7', name: 'Kiosk' })
    expect(spec).toMatchObject({
      ...{ connectionMode: 'connected', managementMode: 'central' },
      platformEndpointURL: 'https://platform.example',
    })
    expect(status.registrationStatus).toBe('removed')
    expect(status.conditions).toContainEqual({
      ...{ type: 'Platform', status: 'False', reason: 'Removed', message: 'this host was removed' },
    })
  })

  it('the reply and its ETag stay the same until a fact changes', async () => {
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
  it('lastModifiedTimestamp stays when only used and free space change, while body and ETag follow', async () => {
    const { build, state } = board()
    const snapshot = await build()
    await snapshot.refresh('all')
    const first = snapshot.current()!
    state.now = 5_000
    state.used = 12
    await snapshot.refresh('minutes')
    const second = snapshot.current()!
    expect(parse(second.body).spec.hardwareSpec.disks[0].partitions[0].usedSpace).toBe(12)
    expect(second.etag).not.toBe(first.etag)
    expect(modifiedOf(second)).toBe(modifiedOf(first))
  })

  it('lastModifiedTimestamp survives a restart and moves with the facts', async () => {
    const { build, state } = board()
    await (await build()).refresh('all')
    state.now = 60_000
    const snapshot = await build()
    await snapshot.refresh('all')
    expect(modifiedOf(snapshot.current()!)).toBe('1970-01-01T00:00:01.000Z')
    state.files.set(hostnameFile, 'renamed\n')
    await snapshot.refresh('all')
    expect(parse(snapshot.current()!.body).metadata).toMatchObject({
      creationTimestamp: '1970-01-01T00:00:01.000Z',
      lastModifiedTimestamp: '1970-01-01T00:01:00.000Z',
    })
  })
})

describe('refresh', () => {
  it('a refresh of one class reads no facts of other classes', async () => {
    const { build, state } = board()
    const snapshot = await build()
    await snapshot.refresh('all')
    const files = {
      seconds: '/etc/resolv.conf',
      mounts: '/proc/1/mountinfo',
      network: '/proc/net/route',
      minutes: '/sys/devices/system/cpu/online',
    }
    for (const scope of ['seconds', 'mounts', 'network', 'minutes'] as const) {
      state.reads.length = 0
      await snapshot.refresh(scope)
      expect(Object.values(files).filter((file) => state.reads.includes(file))).toEqual([files[scope]])
    }
  })

  it('a fact that never changes is never read again', async () => {
    const { build, state } = board()
    const snapshot = await build()
    await snapshot.refresh('all')
    const read = () => state.reads.filter((path) => path.includes('SecureBoot')).length
    const once = read()
    expect(once).toBeGreaterThan(0)
    await snapshot.refresh('all')
    expect(read()).toBe(once)
  })

  it('all callers before the end of the first reading share it', async () => {
    const { build, state } = board()
    const snapshot = await build()
    await snapshot.refresh('seconds')
    expect(snapshot.current()).toBeUndefined()
    state.reads.length = 0
    await Promise.all([snapshot.firstReading(), snapshot.firstReading()])
    expect(snapshot.current()).toBeDefined()
    expect(state.reads.filter((path) => path === hostnameFile)).toHaveLength(1)
  })

  it('callers during a refresh share the next one, which sees their earlier changes', async () => {
    const { build, state } = board()
    const snapshot = await build()
    const first = snapshot.refresh('all')
    await waitFor(() => expect(state.reads).toContain(hostnameFile))
    state.files.set(hostnameFile, 'renamed\n')
    const waiting = Array.from({ length: 50 }, () => snapshot.refresh('all'))
    await Promise.all([first, ...waiting])
    expect(snapshot.hostName()).toBe('renamed')
    expect(state.reads.filter((path) => path === hostnameFile)).toHaveLength(2)
  })
})

describe('a fact that cannot be read', () => {
  it('a fact that cannot be read keeps its last value, is a condition, and is logged once until it can be read', async () => {
    const { build, state, lines } = board()
    const snapshot = await build()
    await snapshot.refresh('all')
    const unreadable = Promise.reject(new Error('EIO: i/o error'))
    // The snapshot handles the rejection only later; until then it would be unhandled.
    unreadable.catch(() => undefined)
    state.files.set('/sys/devices/system/cpu/online', unreadable)
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

  it('a fact that could never be read is absent', async () => {
    const { build, state } = board()
    state.files.set('/proc/meminfo', '')
    const snapshot = await build()
    await snapshot.refresh('all')
    expect(parse(snapshot.current()!.body).spec.hardwareSpec.memory).toEqual({})
  })

  it('a fact that hangs delays no other fact and is not started a second time', async () => {
    let asked = 0
    const answer = Promise.withResolvers<string>()
    const { runner } = programs({
      stat: () => {
        asked += 1
        return answer.promise
      },
    })
    const snapshot = await board({ deadlineMs: 400, runner }).build()
    await snapshot.refresh('all')
    await snapshot.refresh('all')
    const hanging = parse(snapshot.current()!.body)
    expect(asked).toBe(1)
    expect(hanging.spec.hardwareSpec.disks).toMatchObject([{ partitions: [{ mountPoint: '/' }] }])
    expect(hanging.spec.hardwareSpec.disks[0].partitions[0].totalSpace).toBeUndefined()
    expect(hanging.status.conditions).toMatchObject([
      { type: 'space', message: '/: no answer within 400 ms' },
    ])
    answer.resolve(usage(9))
    await snapshot.refresh('all')
    const answered = parse(snapshot.current()!.body)
    expect(answered.spec.hardwareSpec.disks[0].partitions[0].totalSpace).toBe(24)
    expect(answered.status.conditions).toBeUndefined()
  })

  it('a slow fact does not delay the others in the reply, at the first reading and later', async () => {
    const answer = Promise.withResolvers<string>()
    const { build, state } = board({ runner: programs({ stat: () => answer.promise }).runner })
    const snapshot = await build()
    await snapshot.firstReading()
    const first = parse(snapshot.current()!.body)
    expect(first.status.hostName).toBe('board')
    expect(first.status.conditions).toMatchObject([{ type: 'space', message: '/: no answer yet' }])
    state.files.set(hostnameFile, 'renamed\n')
    await snapshot.refresh('seconds')
    expect(snapshot.hostName()).toBe('renamed')
    expect(parse(snapshot.current()!.body).status.hostName).toBe('renamed')
    answer.resolve(usage(9))
    await snapshot.refresh('all')
    expect(parse(snapshot.current()!.body).status.conditions).toBeUndefined()
  })

  it('a part of a fact that cannot be read is a condition for that part', async () => {
    const snapshot = await board({ runner: programs({ stat: 'stat: what?' }).runner }).build()
    await snapshot.refresh('all')
    const { status } = parse(snapshot.current()!.body)
    expect(status.conditions).toMatchObject([{ type: 'space', message: '/: stat printed stat: what?' }])
  })
})

it('listeners are called when addresses or the host name change, and only then', async () => {
  const { build, state } = board()
  const snapshot = await build()
  const heard: string[] = []
  const end = snapshot.onNamesChange(() =>
    heard.push([snapshot.hostName(), ...snapshot.addresses()].join(' ')),
  )
  await snapshot.refreshNames()
  await snapshot.refresh('all')
  state.addresses = ['192.0.2.7', '192.0.2.8']
  await snapshot.refresh('network')
  state.files.set(hostnameFile, 'renamed\n')
  await snapshot.refresh('seconds')
  end()
  state.addresses = []
  await snapshot.refresh('network')
  expect(heard).toEqual([
    'board 192.0.2.7 2001:db8::10',
    'board 192.0.2.7 192.0.2.8 2001:db8::10',
    'renamed 192.0.2.7 192.0.2.8 2001:db8::10',
  ])
  expect(snapshot.addresses()).toEqual(['2001:db8::10'])
})

it('each fact has an age, a duration and whether it can be read', async () => {
  const { build, state } = board()
  state.files.set('/proc/meminfo', '')
  const snapshot = await build()
  const readingOf = (name: string) => snapshot.readings().find((each) => each.name === name)
  expect(readingOf('disks')).toEqual({ name: 'disks', refreshClass: 'seconds', isFailing: false })
  await snapshot.refresh('all')
  expect(readingOf('disks')).toMatchObject({ ageMs: 0, durationMs: 0, isFailing: false })
  expect(readingOf('memory')).toMatchObject({ ageMs: undefined, durationMs: 0, isFailing: true })
  state.now += 6_000
  expect(readingOf('cores')).toMatchObject({ ageMs: 6_000 })
  await snapshot.refresh('seconds')
  expect(readingOf('disks')).toMatchObject({ ageMs: 0 })
  expect(readingOf('cores')).toMatchObject({ ageMs: 6_000 })
})

it('the reply is made although the database cannot be written', async () => {
  const { log } = recordingLog()
  const database = openDatabase(':memory:', log)
  const { build, lines } = board({ database })
  const snapshot = await build()
  database.sql.exec('DROP TABLE host')
  await snapshot.refresh('all')
  expect(parse(snapshot.current()!.body).status.hostName).toBe('board')
  expect(lines.filter(({ level }) => level === 50)).toHaveLength(1)
})
