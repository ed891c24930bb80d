import { describe, expect, it } from 'vitest'
import { changeStanza, planIfupdown } from '../../../src/network/backends/ifupdown.ts'
import {
  parseInterfaces,
  sourcesOf,
  stanzaConfiguration,
} from '../../../src/network/backends/interfaces-file.ts'
import { parseDevices, parseKeyfile, profileConfiguration } from '../../../src/network/backends/keyfile.ts'
import { planNetworkManager } from '../../../src/network/backends/networkmanager.ts'
import { changeProfile, setKey } from '../../../src/network/backends/networkmanager-files.ts'
import type { Planned } from '../../../src/network/backends/planned.ts'
import type { Addressing, WantedChange } from '../../../src/network/wanted.ts'
import { captured } from '../../support/network-host.ts'

const nic = (addressing: Addressing, name = 'eth0'): WantedChange => ({ kind: 'nic', name, addressing })
const static9: Addressing = { type: 'static', address: '192.0.2.9/24', gateway: '192.0.2.1' }
const changeOf = (planned: Planned) => {
  if (planned.kind !== 'change') throw new Error(JSON.stringify(planned))
  return planned.change
}

describe('a change of a link of NetworkManager', () => {
  const [run, etc] = ['/run/NetworkManager/system-connections', '/etc/NetworkManager/system-connections']

  it('is its profile with another address, in /run for the trial and in /etc to be kept, for root alone', async () => {
    const change = changeOf(
      planNetworkManager(await captured('networkmanager'), nic({ ...static9, mtu: 1300 })),
    )
    const text = `[connection]
id=plant
uuid=5c1a9a54-0b6e-4d3e-9f55-3a3d7b0d4a01
type=ethernet
interface-name=eth0

[ethernet]
mtu=1300

[ipv4]
method=manual
address1=192.0.2.9/24,192.0.2.1
dns=192.0.2.1;
dns-search=plant.example;
route1=198.51.100.0/24,192.0.2.2

[ipv6]
method=manual
address1=2001:db8:1::20/64
`
    const up = ['5c1a9a54-0b6e-4d3e-9f55-3a3d7b0d4a01']
    expect(change).toEqual({
      backend: 'networkmanager',
      links: ['eth0'],
      before: {
        files: [{ path: `${run}/plant.nmconnection`, mode: 0o600, content: 'absent' }],
        devices: [],
        up,
        expected: [{ link: 'eth0', addresses: ['192.0.2.20/24', '2001:db8:1::20/64'], gateway: '192.0.2.1' }],
      },
      after: {
        files: [{ path: `${run}/plant.nmconnection`, mode: 0o600, content: { text } }],
        devices: [],
        up,
        expected: [{ link: 'eth0', addresses: ['192.0.2.9/24', '2001:db8:1::20/64'], gateway: '192.0.2.1' }],
      },
      kept: [{ path: `${etc}/plant.nmconnection`, mode: 0o600, content: { text } }],
      summary: 'eth0: address 192.0.2.9/24, gateway 192.0.2.1, MTU 1300',
    })
  })

  it('of a profile without a UUID writes the one that NetworkManager gives it now', async () => {
    const change = changeOf(
      planNetworkManager(await captured('networkmanager'), nic({ type: 'dhcp', mtu: 1300 }, 'eth1')),
    )
    expect(change.after.up).toEqual(['45f3e0da-9301-3635-854d-5fe66ef2e2ce'])
    expect(change.kept[0]?.content).toMatchObject({
      text: expect.stringContaining(
        'interface-name=eth1\nuuid=45f3e0da-9301-3635-854d-5fe66ef2e2ce\n',
      ) as string,
    })
  })

  it('that is so already is no change, and a bridge of somebody else is not deleted', async () => {
    const reading = await captured('networkmanager')
    const same: Addressing = { type: 'static', address: '192.0.2.20/24', gateway: '192.0.2.1' }
    expect(planNetworkManager(reading, nic(same))).toEqual({ kind: 'unchanged' })
    const bridge = { kind: 'bridge', name: 'br1', addressing: static9 } as const
    expect(planNetworkManager(reading, { ...bridge, members: ['eth2'] })).toMatchObject({ kind: 'change' })
    expect(planNetworkManager(reading, { kind: 'delete', of: 'bridge', name: 'br1' })).toMatchObject({
      problems: [{ reason: expect.stringMatching(/^br1 was not made by edgehostd, but by /) as string }],
    })
  })

  it.each<[string, string, Addressing, string]>([
    [
      'to DHCP leaves other addresses',
      '[ipv4]\naddress1=192.0.2.5/24,192.0.2.1\naddress2=192.0.2.6/24\nmethod=manual\n',
      { type: 'dhcp' },
      '[ipv4]\naddress2=192.0.2.6/24\nmethod=auto\n',
    ],
    [
      'to an address takes over the gateway of its own key',
      '[ipv4]\nmethod=manual\naddress=192.0.2.5/24\ngateway=192.0.2.1\n# plant\nmay-fail=false\n',
      static9,
      '[ipv4]\nmethod=manual\naddress=192.0.2.9/24,192.0.2.1\n# plant\nmay-fail=false\n',
    ],
    [
      'puts name servers into the group of their family',
      '[ipv4]\nmethod=auto\n\n[ipv6]\nmethod=auto\n',
      { type: 'dhcp', nameservers: ['192.0.2.1', '2001:db8::1', '192.0.2.2'] },
      '[ipv4]\nmethod=auto\ndns=192.0.2.1;192.0.2.2;\n\n[ipv6]\nmethod=auto\ndns=2001:db8::1;\n',
    ],
  ])('%s', (_what, text, addressing, expected) => {
    expect(changeProfile(text, addressing)).toBe(expected)
  })

  it('a key of a new group stands at the end, and a key that goes leaves the others', () => {
    expect(setKey('[a]\nx=1\n', 'b', 'y', '2')).toBe('[a]\nx=1\n\n[b]\ny=2\n')
    expect(setKey('[a]\nx=1\nz=3\n\n[b]\nx=2\n', 'a', 'x', undefined)).toBe('[a]\nz=3\n\n[b]\nx=2\n')
  })

  it('older spellings of a keyfile are read, and escaped fields of nmcli', () => {
    const text =
      '[connection]\ntype=802-3-ethernet\n[802-3-ethernet]\nmtu=1400\n[ipv4]\nmethod=manual\naddresses1=192.0.2.5/24,192.0.2.1\n'
    expect(profileConfiguration(parseKeyfile(text), '/x')).toMatchObject({
      ...{ type: 'static', mtu: 1400, addresses: ['192.0.2.5/24'], gateway: '192.0.2.1' },
    })
    expect(parseDevices('a\\:b:ethernet:connected:u-1\n')).toEqual([
      { name: 'a:b', state: 'connected', uuid: 'u-1' },
    ])
  })
})

describe('a change of a link of ifupdown', () => {
  it('is the file of its stanza, and all files as one for the trial', async () => {
    const change = changeOf(planIfupdown(await captured('ifupdown'), nic({ ...static9, mtu: 1300 })))
    const kept = `# the plant network
source /etc/network/interfaces.d/*
auto lo
iface lo inet loopback

auto eth0
iface eth0 inet static
	address 192.0.2.9/24
	gateway 192.0.2.1
	mtu 1300
	dns-nameservers 192.0.2.1
	dns-search plant.example
	up ip route add 198.51.100.0/24 via 192.0.2.2
iface eth0 inet6 static
	address 2001:db8:1::20/64
`
    expect(change.kept).toEqual([{ path: '/etc/network/interfaces', mode: 0o644, content: { text: kept } }])
    const [before, after] = [change.before, change.after].map(({ files }) => {
      const content = files[0]?.content
      return typeof content === 'object' ? content.text : ''
    })
    expect(after).toContain('address 192.0.2.9/24')
    expect(after).toContain('iface eth1 inet dhcp')
    expect(after).not.toContain('source')
    expect(before).toContain('address 192.0.2.20/24')
    expect([change.before.up, change.after.up]).toEqual([['eth0'], ['eth0']])
    expect(change.after.expected).toEqual([
      { link: 'eth0', addresses: ['192.0.2.9/24', '2001:db8:1::20/64'], gateway: '192.0.2.1' },
    ])
  })

  it('of a stanza in another file changes that one alone', async () => {
    const change = changeOf(
      planIfupdown(await captured('ifupdown'), nic({ type: 'dhcp', mtu: 1300 }, 'eth1')),
    )
    const text =
      'allow-hotplug eth1\nauto eth1\niface eth1 inet dhcp\n\tpre-up ip link set dev $IFACE mtu 1300\n\tmetric 300\n'
    expect(change.kept).toEqual([{ path: '/etc/network/interfaces.d/eth1', mode: 0o644, content: { text } }])
    const found = parseInterfaces([{ path: 'x', text }])
    expect(stanzaConfiguration(found, 'eth1')).toMatchObject({ type: 'dhcp', mtu: 1300, metric: 300 })
  })

  it('that is so already is no change, and a port without a stanza is refused', async () => {
    const reading = await captured('ifupdown')
    const text = 'iface eth0 inet static\n\taddress 192.0.2.9/24\n\tgateway 192.0.2.1\n'
    expect(changeStanza(text, 'eth0', static9)).toBe(text)
    expect(planIfupdown(reading, nic(static9, 'eth2'))).toMatchObject({ kind: 'refused' })
    expect(planIfupdown(reading, { kind: 'delete', of: 'bridge', name: 'br1' })).toMatchObject({
      problems: [{ reason: expect.stringMatching(/^br1 was not made by edgehostd, but by /) as string }],
    })
  })

  it.each<[string, string, Addressing, string]>([
    [
      'to DHCP takes address, mask and gateway away, also where they are spelled apart',
      'iface eth0 inet static\n  address 192.0.2.5\n  netmask 255.255.255.0\n  broadcast 192.0.2.255\n  gateway 192.0.2.1\n  metric 7\n\nauto lo\n',
      { type: 'dhcp' },
      'iface eth0 inet dhcp\n  metric 7\n\nauto lo\n',
    ],
    [
      'from DHCP keeps commands and an MTU that a command sets',
      'iface eth0 inet dhcp\n  pre-up ip link set dev $IFACE mtu 1300\n  up echo \\\n    address x\n',
      static9,
      'iface eth0 inet static\n  address 192.0.2.9/24\n  gateway 192.0.2.1\n  pre-up ip link set dev $IFACE mtu 1300\n  up echo \\\n    address x\n',
    ],
    [
      'of name servers replaces those of IPv6 too',
      'iface eth0 inet dhcp\niface eth0 inet6 auto\n  dns-nameservers 2001:db8::1\n',
      { type: 'dhcp', nameservers: ['192.0.2.1'] },
      'iface eth0 inet dhcp\n    dns-nameservers 192.0.2.1\niface eth0 inet6 auto\n',
    ],
  ])('%s', (_what, text, addressing, expected) => {
    expect(changeStanza(text, 'eth0', addressing)).toBe(expected)
  })

  it('files that others name are found, in a folder or by a pattern', () => {
    expect(
      sourcesOf(
        'source-directory interfaces.d\n# source x\nsource /etc/a/*.cfg\n',
        '/etc/network/interfaces',
      ),
    ).toEqual([
      { pattern: '/etc/network/interfaces.d', isFolder: true },
      { pattern: '/etc/a/*.cfg', isFolder: false },
    ])
  })
})
