import { existsSync, readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { createHostFiles } from '../../../src/host/files.ts'
import { idOfMachineId } from '../../../src/host/identity/identity.ts'
import type { EdgeHostInfo } from '../../../src/host/schemas.ts'
import { openHostRecord } from '../../../src/host/identity/host-record.ts'
import { createSnapshot, type Snapshot } from '../../../src/host/snapshot.ts'
import { openDatabase } from '../../support/open-database.ts'
import { systemClock } from '../../../src/system/clock.ts'
import { createRunner } from '../../../src/system/runner.ts'
import { recordingLog } from '../../fixtures/host/edges.ts'

// Facts of this machine against its own tools. What a tool cannot say here is skipped, never guessed.

const runner = createRunner()
const gib = 2 ** 30

async function tool(program: string, ...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runner.run(program, args, { timeoutMs: 5_000 })
  if (exitCode !== 0) throw new Error(`${program}: ${stderr}`)
  return stdout
}
const json = async (program: string, ...args: string[]): Promise<unknown> =>
  JSON.parse(await tool(program, ...args))

let snapshot: Snapshot
let host: EdgeHostInfo

beforeAll(async () => {
  const { log, lines } = recordingLog()
  const files = createHostFiles()
  // A container that was never booted has nothing that an id could be made of.
  const settings = { id: 'edge-under-test', identitySources: [] }
  const database = openDatabase(':memory:', log)
  snapshot = createSnapshot({
    files,
    record: await openHostRecord({ settings, files, database, clock: systemClock, log }),
    runner,
    privileged: runner,
    clock: systemClock,
    log,
    config: { mode: 'airgap' },
    agentVersion: '0.0.0',
  })
  await snapshot.refresh('all')
  host = JSON.parse(snapshot.current()!.body)
  expect(lines.filter(({ level }) => level >= 40)).toEqual([])
})

it('processors are counted as by nproc', async () => {
  expect(host.spec.hardwareSpec.cpu.cores).toBe(Number(await tool('nproc')))
})

it('memory is that of /proc/meminfo in MiB', () => {
  const kib = Number(/^MemTotal:\s+(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1])
  expect(host.spec.hardwareSpec.memory.sizeInMB).toBe(Math.floor(kib / 1024))
})

it('the operating system is that of os-release, uname and dpkg', async () => {
  const [family, version] = (
    await tool('sh', '-c', '. /etc/os-release; echo "$ID"; echo "$VERSION_ID"')
  ).split('\n')
  const kernel = (await tool('uname', '-s')).trim()
  const kernelVersion = (await tool('uname', '-r')).trim()
  expect(host.spec.hardwareSpec.os).toEqual({
    family,
    ...(version ? { version } : {}),
    kernel,
    kernelVersion,
  })
  expect(host.status.hostName).toBe((await tool('uname', '-n')).trim())
  if (existsSync('/usr/bin/dpkg')) {
    expect(host.spec.hardwareSpec.archType).toBe((await tool('dpkg', '--print-architecture')).trim())
  }
})

interface BlockDevice {
  name: string
  type: string
  size: number
  tran: string | null
  vendor: string | null
  mountpoints: (string | null)[]
  children?: BlockDevice[]
}

describe('disks', () => {
  const devices = async () => {
    const list = await json('lsblk', '-J', '-b', '-o', 'NAME,TYPE,SIZE,TRAN,VENDOR,MOUNTPOINTS')
    return (list as { blockdevices: BlockDevice[] }).blockdevices
  }
  const physical = async () =>
    (await devices())
      .filter(({ name, type, size }) => type === 'disk' && size > 0 && !/^zram|boot\d$|^nbd|^rbd/.test(name))
      .sort((a, b) => a.name.length - b.name.length || (a.name < b.name ? -1 : 1))
  const mountPoints = ({ mountpoints, children }: BlockDevice): string[] =>
    [
      ...mountpoints.filter((point) => point?.startsWith('/')),
      ...(children ?? []).flatMap(mountPoints),
    ] as string[]

  it('disks are those of lsblk, by size and bus', async () => {
    const buses: Record<string, string> = {
      virtio: 'VIRTIO',
      nvme: 'NVME',
      sata: 'SATA',
      usb: 'USB',
      sas: 'SCSI',
    }
    const expected = (await physical()).map(({ size, tran }) => ({
      size: Math.round(size / gib),
      ...(tran !== null && buses[tran] ? { controller: buses[tran] } : {}),
    }))
    const disks = host.spec.hardwareSpec.disks
    expect(disks.map(({ size }) => ({ size }))).toEqual(expected.map(({ size }) => ({ size })))
    expect(disks).toMatchObject(expected)
  })

  it('disks have the file systems of lsblk, with the space of df', async () => {
    const found = host.spec.hardwareSpec.disks.map(({ partitions }) =>
      partitions.map(({ mountPoint }) => mountPoint),
    )
    // lsblk lists bind mounts of folders beside the file systems themselves.
    const expected = (await physical()).map(mountPoints)
    found.forEach((points, index) => expect(expected[index]).toEqual(expect.arrayContaining(points)))
    const whole = (await tool('findmnt', '-rn', '-o', 'TARGET,FSROOT')).split('\n')
    const onDisks = expected.map((points) => points.filter((point) => whole.includes(`${point} /`)))
    expect(found.flat().sort()).toEqual([...new Set(onDisks.flat())].sort())

    for (const partition of host.spec.hardwareSpec.disks.flatMap(({ partitions }) => partitions)) {
      const line = (await tool('df', '-B1', '--output=fstype,size,used,avail', partition.mountPoint)).split(
        '\n',
      )[1]
      const [type, size, used, available] = line!.trim().split(/\s+/)
      expect(partition).toMatchObject({ fileSystemType: type, totalSpace: Math.round(Number(size) / gib) })
      // Other programs may write between the two readings.
      expect(Math.abs(partition.usedSpace! - Number(used) / gib)).toBeLessThan(1.5)
      expect(Math.abs(partition.freeSpace! - Number(available) / gib)).toBeLessThan(1.5)
    }
  })
})

interface Route {
  dst: string
  dev: string
  metric?: number
  gateway?: string
}

interface IpLink {
  ifname: string
  address: string
  link_type: string
  linkinfo?: { info_kind?: string }
  addr_info: {
    family: string
    local: string
    prefixlen: number
    scope: string
    temporary?: boolean
    secondary?: boolean
  }[]
}

describe('network', () => {
  const dotted = (length: number) =>
    [24, 16, 8, 0]
      .map((shift) => ((((2 ** length - 1) * 2 ** (32 - length)) / 2 ** shift) % 256) | 0)
      .join('.')

  it('the network has the interfaces of ip addr with address, mask and MAC', async () => {
    const links = (await json('ip', '-j', '-d', 'addr')) as IpLink[]
    const kinds = new Set([undefined, 'bond', 'bridge', 'vlan'])
    const hardware = links.filter(
      ({ link_type: type, linkinfo }) => type === 'ether' && kinds.has(linkinfo?.info_kind),
    )
    const routes = (await json('ip', '-j', 'route')) as Route[]
    const defaults = routes.filter(({ dst }) => dst === 'default')
    const best = defaults.sort((a, b) => (a.metric ?? 0) - (b.metric ?? 0))[0]
    if (hardware.length > 0) {
      const expected = hardware.map(({ ifname, address, addr_info: addresses }) => {
        const global = addresses.filter(({ scope, temporary }) => scope === 'global' && !temporary)
        const primary =
          global.find(({ family, secondary }) => family === 'inet' && !secondary) ??
          global.find(({ family }) => family === 'inet6')
        return {
          nicName: ifname,
          macAddr: address,
          isDefault: ifname === best?.dev,
          ...(primary
            ? {
                ip: primary.local,
                subnet: primary.family === 'inet' ? dotted(primary.prefixlen) : String(primary.prefixlen),
              }
            : {}),
        }
      })
      expect(host.spec.networkInfo).toMatchObject(expected)
      expect(host.spec.networkInfo).toHaveLength(expected.length)
    }
    const found = host.spec.networkInfo.find(({ isDefault }) => isDefault)
    expect({ dev: found?.nicName, gateway: found?.gateway }).toEqual({
      dev: best?.dev,
      gateway: best?.gateway,
    })
  })

  it('every global address of the interfaces is listed for the certificate', async () => {
    const links = (await json('ip', '-j', 'addr')) as IpLink[]
    const names = host.spec.networkInfo.map(({ nicName }) => nicName)
    const expected = links
      .filter(({ ifname }) => names.includes(ifname))
      .flatMap(({ addr_info: addresses }) => addresses)
      .filter(({ scope, temporary }) => scope === 'global' && !temporary)
    expect(snapshot.addresses()).toEqual(expected.map(({ local }) => local).sort())
  })
})

it('name servers are those of resolv.conf', () => {
  const text = readFileSync('/etc/resolv.conf', 'utf8')
  const servers = [...text.matchAll(/^nameserver\s+(\S+)/gm)].map(([, server]) => server)
  if (!servers.includes('127.0.0.53')) expect(host.status.dns.nameservers).toEqual(servers)
  else expect(host.status.dns.nameservers).not.toContain('127.0.0.53')
})

it.skipIf(!existsSync('/usr/bin/systemd-id128'))(
  'the id of the machine-id is that of systemd-id128, except for the version bits of a UUID',
  async () => {
    const args = ['machine-id', '--app-specific=d1a6f0c27b3e4c58a94e0b6f7d2c85e3']
    const theirs = (await tool('systemd-id128', ...args)).trim()
    const ours = idOfMachineId(readFileSync('/etc/machine-id', 'utf8'))!
    const bare = (digits: string) => digits.slice(0, 12) + digits.slice(13, 16) + digits.slice(17)
    expect(bare(ours)).toBe(bare(theirs))
  },
)
