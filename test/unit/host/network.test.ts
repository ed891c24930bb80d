import { expect, it } from 'vitest'
import {
  createAskIp,
  readNetwork as read,
  type Ipv4Addresses,
  type Nic,
  parseIpv4DefaultRoutes,
  parseIpv6DefaultRoutes,
} from '../../../src/host/network/network.ts'
import { programs } from '../../fixtures/host/edges.ts'
import { machine } from '../../fixtures/host/tree.ts'
import type { HostFiles } from '../../../src/host/files.ts'
import { CommandFailed, type CommandRunner } from '../../../src/system/runner.ts'

const readNetwork = (files: HostFiles, ipv4: Ipv4Addresses, { runner } = programs()) =>
  read(
    files,
    ipv4,
    createAskIp(runner, () => 0),
  )

const ipv4 = (addresses: Record<string, [ip: string, subnet: string][]>) => () =>
  new Map(
    Object.entries(addresses).map(([name, list]) => [name, list.map(([ip, subnet]) => ({ ip, subnet }))]),
  )

const withoutIndex = ({ index, ...nic }: Nic) => {
  expect(index).toBeGreaterThan(0)
  return nic
}

it('NICs, bond, VLAN and bridge of a rack server are shown, and no interfaces of pods', async () => {
  const { nics, addresses } = await readNetwork(
    machine('rack-server'),
    ipv4({
      br0: [
        ['10.0.0.7', '255.255.0.0'],
        ['10.0.0.8', '255.255.255.255'],
      ],
      'bond0.40': [['192.168.40.7', '255.255.192.0']],
      cni0: [['10.42.0.1', '255.255.255.0']],
      'flannel.1': [['10.42.0.0', '255.255.255.255']],
      'kube-ipvs0': [['10.43.0.1', '255.255.255.255']],
    }),
  )
  const mac = 'b0:7b:25:00:00:01'
  expect(nics.map(withoutIndex)).toEqual([
    { nicName: 'eno1', macAddr: mac, isDefault: false },
    { nicName: 'eno2', macAddr: mac, isDefault: false },
    { nicName: 'bond0', macAddr: mac, isDefault: false },
    {
      nicName: 'bond0.40',
      macAddr: mac,
      isDefault: false,
      ip: '192.168.40.7',
      subnet: '255.255.192.0',
      gateway: '192.168.40.1',
    },
    {
      nicName: 'br0',
      macAddr: 'b0:7b:25:00:00:02',
      isDefault: true,
      ip: '10.0.0.7',
      subnet: '255.255.0.0',
      gateway: '10.0.0.1',
    },
  ])
  expect(addresses).toEqual(['192.168.40.7', '10.0.0.7', '10.0.0.8', 'fd00::7'])
})

it('an IPv6-only interface is shown with its non-temporary address, prefix and default route', async () => {
  const { nics, addresses } = await readNetwork(machine('single-board'), ipv4({}))
  expect(nics.map(withoutIndex)).toEqual([
    { nicName: 'eth0', macAddr: 'dc:a6:32:00:00:01', isDefault: false },
    {
      nicName: 'wlan0',
      macAddr: 'dc:a6:32:00:00:02',
      isDefault: true,
      ip: '2001:db8::10',
      subnet: '64',
      gateway: 'fe80::1',
    },
  ])
  expect(addresses).toEqual(['2001:db8::10'])
})

it('the address of an interface is shown while its cable is unplugged', async () => {
  const files = machine(
    'single-board',
    `/proc/net/route <<
Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT
eth0\t00000000\t010C14AC\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t000C14AC\t00000000\t0001\t0\t0\t0\t00FCFFFF\t0\t0\t0
>>
/proc/net/fib_trie <<
Local:
  +-- 0.0.0.0/0 3 0 5
     |-- 127.0.0.1
        /32 host LOCAL
     +-- 172.20.12.0/22 2 0 2
        |-- 172.20.12.0
           /22 link UNICAST
        |-- 172.20.13.9
           /32 host LOCAL
        |-- 172.20.15.255
           /32 link BROADCAST
     |-- 198.51.100.7
        /32 host LOCAL
>>
`,
  )
  const { nics } = await readNetwork(files, ipv4({ wlan0: [['198.51.100.7', '255.255.255.0']] }))
  expect(nics.find(({ nicName }) => nicName === 'eth0')).toMatchObject({
    ip: '172.20.13.9',
    subnet: '255.255.252.0',
    gateway: '172.20.12.1',
    isDefault: true,
  })
})

it('the event loop gets turns while hundreds of interfaces are read', async () => {
  const names = Array.from({ length: 100 }, (_, count) => `x${count}`)
  const files = machine(
    'container',
    names.map((name) => `/sys/class/net/${name} -> ../../devices/virtual/net/${name}`).join('\n'),
  )
  let turns = 0
  const timer = setInterval(() => (turns += 1), 0)
  await readNetwork(files, ipv4({}))
  clearInterval(timer)
  expect(turns).toBeGreaterThan(0)
})

it('the inner end of a veth pair is shown where there is no hardware', async () => {
  const { nics } = await readNetwork(machine('container'), ipv4({ host0: [['169.254.7.9', '255.255.0.0']] }))
  expect(nics.map(withoutIndex)).toEqual([
    {
      nicName: 'host0',
      macAddr: '02:00:00:00:00:05',
      isDefault: false,
      ip: '169.254.7.9',
      subnet: '255.255.0.0',
    },
  ])
})

it('the interface of a default route is always shown', async () => {
  const files = machine(
    'rack-server',
    '/sys/class/net/wg0 -> ../../devices/virtual/net/wg0\n/sys/devices/virtual/net/wg0/uevent <<\nDEVTYPE=wireguard\nINTERFACE=wg0\nIFINDEX=20\n>>\n/proc/net/route <<\nwg0\t00000000\t00000000\t0001\t0\t0\t50\t00000000\t0\t0\t0\n>>\n',
  )
  const { nics } = await readNetwork(files, ipv4({ wg0: [['10.9.0.2', '255.255.255.0']] }))
  expect(nics.filter(({ isDefault }) => isDefault).map(withoutIndex)).toEqual([
    { nicName: 'wg0', isDefault: true, ip: '10.9.0.2', subnet: '255.255.255.0' },
  ])
})

it('the default route is the one with the lowest metric, never a reject route', () => {
  const line = (name: string, flags: string, metric: number) =>
    `${name}\t00000000\t010200C0\t${flags}\t0\t0\t${metric}\t00000000\t0\t0\t0`
  const text = [line('a', '0003', 100), line('b', '0203', 1), line('c', '0003', 20)].join('\n')
  expect(parseIpv4DefaultRoutes(text)).toEqual([
    { nicName: 'c', gateway: '192.0.2.1', metric: 20 },
    { nicName: 'a', gateway: '192.0.2.1', metric: 100 },
  ])
})

it('a route to half of the address space is no default route', () => {
  expect(parseIpv4DefaultRoutes('tun0\t00000000\t0108080A\t0003\t0\t0\t0\t00000080\t0\t0\t0\n')).toEqual([])
  const half = `${'0'.repeat(32)} 01 ${'0'.repeat(32)} 00 ${'0'.repeat(32)} 00000400 1 0 00000001 tun0`
  expect(parseIpv6DefaultRoutes(half)).toEqual([])
})

it('a card, and a bridge with a hardware port, are shown even under names that pods use', async () => {
  const { nics } = await readNetwork(
    machine(
      '',
      `/sys/class/net/docker7 -> ../../devices/pci0000:00/0000:00:1f.6/net/docker7
/sys/devices/pci0000:00/0000:00:1f.6/net/docker7/uevent = IFINDEX=2
/sys/class/net/br-0123456789ab -> ../../devices/virtual/net/br-0123456789ab
/sys/devices/virtual/net/br-0123456789ab/uevent <<
DEVTYPE=bridge
IFINDEX=3
>>
/sys/devices/virtual/net/br-0123456789ab/brif/docker7 = here
/sys/class/net/br-ba9876543210 -> ../../devices/virtual/net/br-ba9876543210
/sys/devices/virtual/net/br-ba9876543210/uevent <<
DEVTYPE=bridge
IFINDEX=4
>>
/sys/devices/virtual/net/br-ba9876543210/brif/veth1 = here
/sys/class/net/veth1 -> ../../devices/virtual/net/veth1
/sys/devices/virtual/net/veth1/uevent = IFINDEX=5
/sys/class/net/tap0 -> ../../devices/virtual/net/tap0
/sys/devices/virtual/net/tap0/uevent = IFINDEX=6`,
    ),
    ipv4({
      'br-0123456789ab': [['10.0.0.7', '255.255.255.0']],
      'br-ba9876543210': [['172.18.0.1', '255.255.0.0']],
      tap0: [['10.9.0.1', '255.255.255.0']],
    }),
  )
  expect(nics.map(({ nicName }) => nicName)).toEqual(['docker7', 'br-0123456789ab', 'tap0'])
})

const unitOf = (address: string) => `/etc/systemd/system/edgehostd-vip.service <<
ExecStartPre=/bin/sh -c 'exec ip address replace ${address} dev eth0'
>>
`
const addressOf = async (changes: string, addresses: [string, string][], answers = programs()) => {
  const { nics } = await readNetwork(machine('single-board', changes), ipv4({ eth0: addresses }), answers)
  return nics.find(({ nicName }) => nicName === 'eth0')?.ip
}

it('an address with a network comes before one without, which counts where there is no other', async () => {
  const single: [string, string] = ['192.0.2.50', '255.255.255.255']
  expect(await addressOf('', [single, ['192.0.2.10', '255.255.255.0']])).toBe('192.0.2.10')
  expect(await addressOf('', [single])).toBe('192.0.2.50')
})

it('the address that is held for the cluster is never that of the host', async () => {
  const changes = unitOf('192.0.2.50/32')
  expect(await addressOf(changes, [['192.0.2.50', '255.255.255.255']])).toBeUndefined()
  expect(
    await addressOf(changes, [
      ['192.0.2.50', '255.255.255.0'],
      ['192.0.2.7', '255.255.255.255'],
    ]),
  ).toBe('192.0.2.7')
})

it('a preferred address comes before a deprecated one, and ip is asked only where there is a choice', async () => {
  const deprecated = JSON.stringify([{ ifname: 'eth0', addr_info: [{ local: '192.0.2.9' }, {}] }])
  const answers = programs({ 'ip -json -4 address show deprecated': deprecated })
  const [old, present]: [string, string][] = [
    ['192.0.2.9', '255.255.255.0'],
    ['192.0.2.10', '255.255.255.0'],
  ]
  expect(await addressOf('', [old!, present!], answers)).toBe('192.0.2.10')
  expect(answers.ran.filter((line) => line.includes('address'))).toHaveLength(1)
  expect(await addressOf('', [old!], answers)).toBe('192.0.2.9')
  expect(answers.ran.filter((line) => line.includes('address'))).toHaveLength(1)
})

it('a default route of another table counts where the main table has none', async () => {
  const answers = programs({
    'ip -json -4 route show table all default': JSON.stringify([
      { type: 'unreachable', dst: 'default', dev: 'lo', table: '7' },
      { dst: 'default', gateway: '192.0.2.2', dev: 'wlan0', table: '101', metric: 20 },
      { dst: 'default', gateway: '192.0.2.1', dev: 'eth0', table: '100', metric: 10 },
    ]),
  })
  const files = machine('single-board', '/proc/net/route <<\n>>\n/proc/net/ipv6_route <<\n>>\n')
  const { nics } = await readNetwork(files, ipv4({ eth0: [['192.0.2.10', '255.255.255.0']] }), answers)
  expect(nics.filter(({ isDefault }) => isDefault)).toMatchObject([
    { nicName: 'eth0', ip: '192.0.2.10', gateway: '192.0.2.1' },
  ])
})

it('a default route with several next hops in another table gives each interface its gateway', async () => {
  // As iproute2 6.1 prints it.
  const hop = (dev: string, gateway: string) => ({ gateway, dev, weight: 1, flags: [] })
  const nexthops = [hop('wlan0', '192.0.2.2'), hop('eth0', '192.0.2.1'), { dev: 7 }]
  const answers = programs({
    'ip -json -4 route show table all default': JSON.stringify([
      { dst: 'default', table: '100', metric: 5, flags: [], nexthops },
      { dst: 'default', table: '101', metric: 6, flags: [] },
    ]),
  })
  const files = machine('single-board', '/proc/net/route <<\n>>\n/proc/net/ipv6_route <<\n>>\n')
  const addresses = ipv4({
    wlan0: [['192.0.2.11', '255.255.255.0']],
    eth0: [['192.0.2.10', '255.255.255.0']],
  })
  const { nics } = await readNetwork(files, addresses, answers)
  const shown = nics.map(({ nicName, gateway, isDefault }) => [nicName, gateway, isDefault])
  expect(shown).toContainEqual(['wlan0', '192.0.2.2', true])
  expect(shown).toContainEqual(['eth0', '192.0.2.1', false])
})

it('a default route with several next hops in the main table gives each interface its gateway, but for a dead one', async () => {
  const line = 'eth0\t00000000\t010200C0\t0003\t0\t0\t5\t00000000\t0\t0\t0'
  const hop = (dev: string, gateway: string, flags: string[] = []) => ({ gateway, dev, weight: 1, flags })
  const nexthops = [
    hop('eth0', '192.0.2.1'),
    hop('wlan0', '192.0.2.2'),
    hop('eth1', '192.0.2.3', ['dead', 'linkdown']),
  ]
  const answers = programs({
    'ip -json -4 route show default': JSON.stringify([{ dst: 'default', metric: 5, flags: [], nexthops }]),
  })
  const files = machine(
    'single-board',
    `/proc/net/route <<\nIface\n${line}\n>>\n/proc/net/ipv6_route <<\n>>\n`,
  )
  const [eth0, wlan0]: [string, string][] = [
    ['192.0.2.10', '255.255.255.0'],
    ['192.0.2.11', '255.255.255.0'],
  ]
  const routed = async (addresses: Ipv4Addresses) =>
    (await readNetwork(files, addresses, answers)).nics.flatMap(({ nicName, gateway, isDefault }) =>
      gateway === undefined ? [] : [[nicName, gateway, isDefault]],
    )
  // With one interface there is nothing to ask.
  expect(await routed(ipv4({ eth0: [eth0!] }))).toEqual([['eth0', '192.0.2.1', true]])
  expect(answers.ran).toEqual([])
  expect(await routed(ipv4({ eth0: [eth0!], wlan0: [wlan0!] }))).toEqual([
    ['eth0', '192.0.2.1', true],
    ['wlan0', '192.0.2.2', false],
  ])
  // Of an older kernel, or without ip: what /proc has.
  expect(
    (await readNetwork(files, ipv4({ eth0: [eth0!], wlan0: [wlan0!] }), programs({}))).nics.find(
      ({ nicName }) => nicName === 'eth0',
    ),
  ).toMatchObject({ gateway: '192.0.2.1', isDefault: true })
})

it('ip is asked again soon after it has failed', async () => {
  let isLate = true
  const runner: CommandRunner = {
    async run() {
      if (isLate) throw new CommandFailed('ip', 'timed-out', '')
      return { exitCode: 0, stdout: '[{"dev":"eth0"}]', stderr: '' }
    },
  }
  let now = 0
  const askIp = createAskIp(runner, () => now)
  const asked = () => askIp(['route'], 'a')
  expect(await asked()).toEqual([])
  isLate = false
  expect(await asked()).toEqual([])
  now = 10_000
  expect(await asked()).toEqual([{ dev: 'eth0' }])
})

it('ip is asked again when what the question is about has changed, or after ten minutes', async () => {
  let now = 0
  const { runner, ran } = programs({ ip: '[]' })
  const askIp = createAskIp(runner, () => now)
  const asked = async (about: string) => {
    await askIp(['address', 'show', 'deprecated'], about)
    return ran.length
  }
  expect([await asked('a'), await asked('a'), await asked('b'), await asked('b')]).toEqual([1, 1, 2, 2])
  now = 600_000
  expect([await asked('b'), await asked('b')]).toEqual([3, 3])
})

it('a folder in place of the unit that holds an address of a cluster hides no network', async () => {
  const unit = '/etc/systemd/system/edgehostd-vip.service/\n'
  expect(await addressOf(unit, [['192.0.2.10', '255.255.255.0']])).toBe('192.0.2.10')
})
