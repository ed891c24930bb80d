import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EdgeHostInfo } from '../../src/host/schemas.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'

const right = 'right canary 0901'
const gib = 1_024 ** 3

let host: Edgehostd
let token: string
let seen: EdgeHostInfo
let firstKey: string

async function facts(): Promise<EdgeHostInfo> {
  const { status, json } = await host.http('GET', '/v1/edge-mgmt/edgehosts/current?refresh=true', { token })
  expect(status).toBe(200)
  return json as EdgeHostInfo
}

const certificate = () => new X509Certificate(readFileSync(host.cacert))
const publicKey = () => certificate().publicKey.export({ format: 'pem', type: 'spki' }).toString()

/** Has a certificate made that names this address, once the daemon has seen it, and trusts it from then on. */
async function certificateFor(address: string): Promise<void> {
  await eventually(async () => {
    // Without a reload the daemon makes at most one an hour.
    await host.sh('systemctl reload edgehostd')
    await host.trust()
    expect(certificate().checkIP(address)).toBe(address)
  })
}

beforeAll(async () => {
  // A file system that lives on a real disk: the root of the test machine, not to be written to.
  host = await bootEdgehostd({ lower: 'machine', nspawn: ['--bind-ro=/:/mnt/machine:norbind'] })
  await host.addUser({ name: 'anna', password: right })
  // One of each kind.
  await host.write(
    '/etc/resolv.conf',
    'search plant.example shop.example\nnameserver 10.77.0.2\nnameserver fd77::2\noptions ndots:2 timeout:1\n',
  )
  await host.write(
    '/etc/systemd/timesyncd.conf.d/site.conf',
    '[Time]\nNTP=10.77.0.2 time.plant.example\nFallbackNTP=10.77.0.3\n',
  )
  // timesyncd keeps away from containers and may not set this clock; what it would ask is all that matters here.
  await host.write(
    '/etc/systemd/system/systemd-timesyncd.service.d/container.conf',
    '[Unit]\nConditionVirtualization=\nConditionCapability=\n[Service]\nAmbientCapabilities=\nCapabilityBoundingSet=\nExecStart=\nExecStart=/lib/systemd/systemd-timesyncd\n',
  )
  await host.sh('systemctl daemon-reload; systemctl start systemd-timesyncd')
  await host.sh(`
    ip route add default via 10.77.0.2
    ip link add spare type veth peer name spur
    ip address add 192.0.2.9/29 dev spare; ip address add 198.51.100.7/20 dev spur
    ip link set spare up; ip link set spur up`)
  firstKey = publicKey()
  await certificateFor('192.0.2.9')
  token = (await host.openSession('anna', right)).token
  seen = await facts()
})
afterAll(() => host.unplug())

interface Block {
  readonly name: string
  readonly type: string
  readonly size: number
  readonly 'maj:min': string
  readonly children?: readonly Block[]
}

describe('the facts of the installed unit', () => {
  it('host name, kernel and architecture are those of hostname, uname and dpkg', async () => {
    expect(seen.status.hostName).toBe((await host.output(['hostname'])).trim())
    expect(seen.spec.hardwareSpec.archType).toBe((await host.output(['dpkg', '--print-architecture'])).trim())
    expect(seen.spec.hardwareSpec.os.kernelVersion).toBe((await host.output(['uname', '-r'])).trim())
    const version = await host.output(['dpkg-query', '-W', '-f', '${Version}', 'edgehostd'])
    expect(version.startsWith(seen.status.agentVersion)).toBe(true)
  })

  it('processors are counted as by nproc', async () => {
    expect(seen.spec.hardwareSpec.cpu.cores).toBe(Number(await host.output(['nproc'])))
  })

  it('memory is that of /proc/meminfo, in whole MiB', async () => {
    const kib = Number(/^MemTotal:\s+(\d+) kB$/m.exec(await host.output(['cat', '/proc/meminfo']))![1])
    expect(seen.spec.hardwareSpec.memory.sizeInMB).toBe(Math.floor(kib / 1_024))
  })

  it('the operating system is that of os-release', async () => {
    const [family, version] = (await host.sh('. /etc/os-release; echo "$ID"; echo "$VERSION_ID"')).split('\n')
    expect(seen.spec.hardwareSpec.os).toMatchObject({ family, version })
  })

  it('the disks are those of lsblk, with their sizes', async () => {
    const { blockdevices } = JSON.parse(await host.output(['lsblk', '-J', '-b', '-o', 'NAME,TYPE,SIZE'])) as {
      blockdevices: Block[]
    }
    const disks = blockdevices.filter(
      ({ name, type, size }) => type === 'disk' && size > 0 && !name.startsWith('zram'),
    )
    expect(seen.spec.hardwareSpec.disks.map(({ size }) => size).sort()).toEqual(
      disks.map(({ size }) => Math.round(size / gib)).sort(),
    )
  })

  it('the file systems on disks are those of df', async () => {
    // Both read a file system in use: a number may change meanwhile.
    await eventually(async () => {
      expect(partitionsOf(await facts())).toEqual([await fileSystemAt('/mnt/machine')])
    })
  })

  it('the addresses are those of ip, with masks and hardware addresses', async () => {
    interface Link {
      ifname: string
      address: string
      addr_info: { family: string; local: string; prefixlen: number }[]
    }
    const links = JSON.parse(await host.output(['ip', '-j', 'address'])) as Link[]
    const expected = links.flatMap(({ ifname, address, addr_info }) => {
      const ipv4 = addr_info.find(({ family }) => family === 'inet')
      return ifname === 'lo' || !ipv4
        ? []
        : [{ nicName: ifname, macAddr: address, ip: ipv4.local, subnet: maskOf(ipv4.prefixlen) }]
    })
    expect(expected.length).toBe(3)
    const byName = (a: { nicName: string }, b: { nicName: string }) => (a.nicName < b.nicName ? -1 : 1)
    expect(
      seen.spec.networkInfo
        .map(({ nicName, macAddr, ip, subnet }) => ({ nicName, macAddr, ip, subnet }))
        .sort(byName),
    ).toEqual(expected.sort(byName))
  })

  it('the default route is that of ip', async () => {
    const [route] = JSON.parse(await host.output(['ip', '-j', 'route', 'show', 'default'])) as [
      { dev: string; gateway: string },
    ]
    const defaults = seen.spec.networkInfo.filter(({ isDefault }) => isDefault)
    expect(defaults.map(({ nicName, gateway }) => ({ dev: nicName, gateway }))).toEqual([
      { dev: route.dev, gateway: route.gateway },
    ])
  })

  it('name servers, domains and options are those of resolv.conf', async () => {
    const lines = (await host.output(['cat', '/etc/resolv.conf'])).split('\n').map((line) => line.split(' '))
    const values = (key: string) =>
      lines.filter(([keyword]) => keyword === key).flatMap(([, ...rest]) => rest)
    expect(seen.status.dns).toEqual({
      nameservers: values('nameserver'),
      searchDomains: values('search'),
      options: values('options'),
    })
  })

  it('the time servers are those of timedatectl', async () => {
    const shown = await host.output([
      'timedatectl',
      'show-timesync',
      '-p',
      'SystemNTPServers',
      '-p',
      'FallbackNTPServers',
    ])
    const values = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(shown)![1]!.split(' ')
    expect(values('SystemNTPServers')).toEqual(['10.77.0.2', 'time.plant.example'])
    expect(seen.status.ntp).toMatchObject({
      ntpServers: values('SystemNTPServers'),
      fallbackNtpServers: values('FallbackNTPServers'),
    })
  })

  it('the poll figures are those of timedatectl, in seconds', async () => {
    const properties = {
      rootDistanceMaxSec: 'RootDistanceMaxUSec',
      pollIntervalMinSec: 'PollIntervalMinUSec',
      pollIntervalMaxSec: 'PollIntervalMaxUSec',
    }
    for (const [field, property] of Object.entries(properties)) {
      const span = (await host.output(['timedatectl', 'show-timesync', '--value', '-p', property])).trim()
      // systemd's own arithmetic: the line "us: 2048000000".
      const us = /^\s*us: (\d+)$/m.exec(await host.output(['systemd-analyze', 'timespan', span]))![1]
      expect(seen.status.ntp).toMatchObject({ [field]: String(Number(us) / 1e6) })
    }
  })

  it('the id is kept across restarts', async () => {
    await host.output(['systemctl', 'restart', 'edgehostd'])
    expect((await facts()).metadata.id).toBe(seen.metadata.id)
    expect(seen.metadata.id).toMatch(/^edge-[0-9a-f]{32}$/)
  })

  it('the modes are airgap, pending and not applicable by default', () => {
    expect(seen.spec.connectionMode).toBe('airgap')
    expect(seen.status).toMatchObject({
      configurationStatus: 'pending',
      isClusterPhase: false,
      registrationStatus: 'not applicable',
    })
  })

  it('a request with the ETag of the facts is answered with 304', async () => {
    const path = '/v1/edge-mgmt/edgehosts/current'
    const first = await host.http('GET', path, { token })
    const etag = first.headers.etag?.[0] ?? ''
    expect(etag).not.toBe('')
    const again = await host.http('GET', path, { token, headers: { 'If-None-Match': etag } })
    expect(again).toMatchObject({ status: 304, text: '' })
  })
})

describe('a change of the host', () => {
  it('a change of the host name by hostnamectl is seen, and is in the certificate', async () => {
    await host.output(['hostnamectl', 'set-hostname', 'press-17'])
    await eventually(async () => {
      await host.trust()
      expect(certificate().checkHost('press-17')).toBe('press-17')
    })
    const { json } = await host.http('GET', '/v1/edge-mgmt/edgehosts/current', { token })
    expect(json.status.hostName).toBe('press-17')
  })

  it('a new address is seen and moves lastModifiedTimestamp; the certificate follows at a reload', async () => {
    const before = await facts()
    await host.sh('ip address del 192.0.2.9/29 dev spare; ip address add 192.0.2.10/29 dev spare')
    await eventually(async () =>
      expect(await host.output(['journalctl', '-u', 'edgehostd', '-g', 'lacks a new address'])).toContain(
        'lacks',
      ),
    )
    await host.trust()
    expect(certificate().checkIP('192.0.2.10')).toBeUndefined()
    await certificateFor('192.0.2.10')
    const after = await facts()
    expect(after.spec.networkInfo.find(({ nicName }) => nicName === 'spare')?.ip).toBe('192.0.2.10')
    expect(Date.parse(after.metadata.lastModifiedTimestamp)).toBeGreaterThan(
      Date.parse(before.metadata.lastModifiedTimestamp),
    )
  })

  it('a change of addresses makes a new certificate of the same key, so a pin stays valid', () => {
    expect(certificate().checkIP('192.0.2.10')).toBe('192.0.2.10')
    expect(certificate().checkIP('192.0.2.9')).toBeUndefined()
    expect(publicKey()).toBe(firstKey)
  })

  it('a refresh without a change does not move lastModifiedTimestamp', async () => {
    const before = await facts()
    await host.sh('head -c 50M /dev/urandom > /var/filler; sync')
    expect((await facts()).metadata.lastModifiedTimestamp).toBe(before.metadata.lastModifiedTimestamp)
  })

  it('a new file system on /home is seen', async () => {
    expect(partitionsOf(await facts())).not.toContainEqual(expect.objectContaining({ mountPoint: '/home' }))
    await host.sh('mount --bind /mnt/machine /home; umount /mnt/machine')
    try {
      await eventually(async () => {
        expect(partitionsOf(await facts())).toEqual([await fileSystemAt('/home')])
      })
    } finally {
      await host.output(['umount', '/home'])
    }
  })
})

const partitionsOf = (info: EdgeHostInfo) =>
  info.spec.hardwareSpec.disks.flatMap(({ partitions }) => partitions)

async function fileSystemAt(mountPoint: string) {
  const columns = '--output=fstype,size,used,avail'
  const line = (await host.output(['df', '-B1', columns, mountPoint])).trim().split('\n').at(-1)!
  const [fileSystemType, ...bytes] = line.trim().split(/\s+/)
  const [totalSpace, usedSpace, freeSpace] = bytes.map((each) => Math.round(Number(each) / gib))
  return { mountPoint, fileSystemType, totalSpace, usedSpace, freeSpace }
}

const maskOf = (length: number) =>
  [24, 16, 8, 0].map((shift) => ((length === 0 ? 0 : ~0 << (32 - length)) >>> shift) & 255).join('.')
