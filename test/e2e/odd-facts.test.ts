import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { EdgeHostInfo } from '../../src/host/schemas.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'

// Names and addresses that are valid and rare, made by ip(8) and mount(8) on a booted host.

let host: Edgehostd

/** As root asks on the host itself: a new address makes a new certificate. */
async function facts(): Promise<EdgeHostInfo> {
  const path = '/v1/edge-mgmt/edgehosts/current?refresh=true'
  return JSON.parse(await host.output(['edgehostctl', 'api', 'get', path])) as EdgeHostInfo
}

const nicOf = ({ spec }: EdgeHostInfo, name: string) =>
  spec.networkInfo.find(({ nicName }) => nicName === name)

beforeAll(async () => {
  // A file system that lives on a real disk: the root of the test machine, not to be written to.
  host = await bootEdgehostd({ lower: 'machine', nspawn: ['--bind-ro=/:/mnt/machine:norbind'] })
})
afterAll(() => host.unplug())

const made = ['veth0', 'cali0', 'lxc7', 'docker0', 'inside', 'quiet', 'lone', 'odd7']

describe('an interface with an address', () => {
  afterEach(async () => {
    for (const name of made) await host.run(['ip', 'link', 'del', name])
  })

  it.each(['veth0', 'cali0', 'lxc7'])(
    'an interface with an address is shown under the name %s',
    async (name) => {
      await host.sh(`
      ip link add ${name} type veth peer name peer
      ip address add 203.0.113.9/29 dev ${name}; ip link set ${name} up; ip link set peer up`)
      expect(nicOf(await facts(), name)).toMatchObject({ ip: '203.0.113.9', subnet: '255.255.255.248' })
    },
  )

  it('a bridge with the name and the ports of a container engine is hidden', async () => {
    await host.sh(`
      ip link add docker0 type bridge; ip address add 203.0.113.9/29 dev docker0; ip link set docker0 up
      ip link add inside type veth peer name outside; ip link set outside master docker0 up; ip link set inside up`)
    expect(nicOf(await facts(), 'docker0')).toBeUndefined()
  })

  it('an interface without carrier is shown with its address, but not with a /32, as documented', async () => {
    await host.sh(`
      ip link add quiet type veth peer name loud; ip address add 203.0.113.9/29 dev quiet; ip link set quiet up
      ip link add lone type veth peer name other; ip address add 203.0.113.20/32 dev lone; ip link set lone up`)
    const before = await facts()
    expect(nicOf(before, 'quiet')).toMatchObject({ ip: '203.0.113.9', subnet: '255.255.255.248' })
    expect(nicOf(before, 'lone')).toBeUndefined()
    await host.sh('ip link set other up')
    expect(nicOf(await facts(), 'lone')).toMatchObject({ ip: '203.0.113.20', subnet: '255.255.255.255' })
  })

  it.each(['tap', 'dummy'])('a %s with an address is shown', async (kind) => {
    const { exitCode, stderr } = await host.run(
      kind === 'tap'
        ? ['ip', 'tuntap', 'add', 'odd7', 'mode', 'tap']
        : ['ip', 'link', 'add', 'odd7', 'type', kind],
    )
    if (exitCode !== 0) {
      // A kernel without it, or a host without /dev/net/tun.
      expect(stderr).toMatch(/Unknown device type|not supported|No such (file|device)|not permitted/)
      return
    }
    expect(nicOf(await facts(), 'odd7')).toBeUndefined()
    await host.sh('ip address add 203.0.113.9/29 dev odd7; ip link set odd7 up')
    expect(nicOf(await facts(), 'odd7')).toMatchObject({ ip: '203.0.113.9', subnet: '255.255.255.248' })
  })
})

describe('a mount point', () => {
  it('a mount point whose name is not UTF-8 has its figures', async () => {
    await host.sh(`
      folder=$(printf '/srv/caf\\351 x'); mkdir -p "$folder"
      mount --bind /mnt/machine "$folder"; umount /mnt/machine`)
    const { spec, status } = await facts()
    expect(status.conditions).toBeUndefined()
    const partition = spec.hardwareSpec.disks
      .flatMap(({ partitions }) => partitions)
      .find(({ mountPoint }) => mountPoint === '/srv/caf\u{fffd} x')
    expect(partition?.totalSpace).toBeGreaterThan(0)
    const blocks = await host.sh(`stat -f -c '%b %S' "$(printf '/srv/caf\\351 x')"`)
    const [count, size] = blocks.trim().split(' ').map(Number)
    expect(partition?.totalSpace).toBe(Math.round((count! * size!) / 1_024 ** 3))
  })
})

describe('/etc/resolv.conf', () => {
  it('resolv.conf gives three addresses, and a condition for an invalid one', async () => {
    await host.sh('umount /etc/resolv.conf || true; rm -f /etc/resolv.conf')
    const servers = ['10.0.0.300', '10.77.0.2', '10.77.0.3', 'fd77::4', '10.77.0.5']
    await host.write('/etc/resolv.conf', servers.map((each) => `nameserver ${each}\n`).join(''))
    const { status } = await facts()
    expect(status.dns).toEqual({
      nameservers: ['10.77.0.2', '10.77.0.3', 'fd77::4'],
      options: [],
      searchDomains: [],
    })
    expect(status.conditions).toEqual([
      expect.objectContaining({
        type: 'dns',
        message: expect.stringContaining('"10.0.0.300" is not an address') as string,
      }),
    ])
  })
})
