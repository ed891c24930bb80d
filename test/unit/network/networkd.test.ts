import { describe, expect, it } from 'vitest'
import { planNetworkd } from '../../../src/network/backends/networkd.ts'
import {
  changeAddressing,
  formatUnit,
  forLink,
  iaidOfLease,
  networkConfiguration,
  parseUnit,
} from '../../../src/network/backends/networkd-files.ts'
import type { ChangeSet, StateFile } from '../../../src/network/change-set.ts'
import type { Addressing, WantedChange } from '../../../src/network/wanted.ts'
import { captured, changeNetworkctl, type Changes } from '../../support/network-host.ts'

const run = '/run/systemd/network'
const kept = '/usr/local/lib/systemd/network'
const static9: Addressing = { type: 'static', address: '192.0.2.9/24', gateway: '192.0.2.1' }

async function plan(wanted: WantedChange, changes?: Changes): Promise<ChangeSet> {
  const planned = planNetworkd(await captured('networkd', changes), wanted)
  if (planned.kind !== 'change') throw new Error(JSON.stringify(planned))
  return planned.change
}
const contentOf = (files: readonly StateFile[], path: string) => {
  const content = files.find((file) => file.path === path)?.content
  return typeof content === 'object' ? content.text : content
}

/** A host on which a change was kept: its files are in force. */
const after = ({ kept: files }: ChangeSet, links: Readonly<Record<string, object>> = {}): Changes => ({
  files: Object.fromEntries(
    files.map(({ path, content }) => [path, typeof content === 'object' ? content.text : undefined]),
  ),
  output: {
    'networkctl --json=short': changeNetworkctl((all) => {
      for (const link of all) {
        const own = `${kept}/05-edgehostd-${String(link.Name)}.network`
        if (files.some(({ path, content }) => path === own && typeof content === 'object'))
          Object.assign(link, { NetworkFile: own })
      }
      for (const [name, fields] of Object.entries(links)) {
        const found = all.find((link) => link.Name === name)
        if (found) Object.assign(found, fields)
        else
          all.push({
            ...{
              Name: name,
              AdministrativeState: 'configured',
              NetworkFile: `${kept}/05-edgehostd-${name}.network`,
            },
            ...fields,
          })
      }
    }),
  },
})

/** A device that was made since the capture. */
const withDevice = (changes: Changes, device: object): Changes => ({
  ...changes,
  output: {
    ...changes.output,
    'ip -json -details address show': (text) =>
      JSON.stringify([
        ...(JSON.parse(text) as { ifname: string }[]).map((link) => ({
          ...link,
          ...masters(link.ifname, device),
        })),
        { ifindex: 9, flags: ['UP', 'LOWER_UP'], mtu: 1500, link_type: 'ether', addr_info: [], ...device },
      ]),
  },
})
const masters = (name: string, device: { ports?: readonly string[]; ifname?: string }) =>
  device.ports?.includes(name) ? { master: device.ifname } : {}

describe('a change of a NIC', () => {
  it('changes what it names, and carries over IPv6, routes, domains and drop-ins', async () => {
    const change = await plan({ kind: 'nic', name: 'eth0', addressing: static9 })
    expect(contentOf(change.after.files, `${run}/05-edgehostd-eth0.network`))
      .toBe(`# Written by edgehostd for eth0; it is changed with edgehostctl network.
# Carried over from: /etc/systemd/network/20-mgmt.network

[Match]
Name=eth0

[Link]
MTUBytes=1400

[Network]
Address=192.0.2.9/24
Address=2001:db8:1::20/64
DNS=192.0.2.1
Domains=plant.example ~corp.example
IPv6AcceptRA=no

[Network]
LLDP=yes

[Route]
Gateway=192.0.2.1

[Route]
Destination=198.51.100.0/24
Gateway=192.0.2.2
`)
    expect(change).toMatchObject({
      backend: 'networkd',
      links: ['eth0'],
      summary: 'eth0: address 192.0.2.9/24, gateway 192.0.2.1',
      before: {
        devices: [],
        expected: [{ link: 'eth0', addresses: ['192.0.2.20/24', '2001:db8:1::20/64'], gateway: '192.0.2.1' }],
      },
      after: {
        devices: [],
        expected: [{ link: 'eth0', addresses: ['192.0.2.9/24', '2001:db8:1::20/64'], gateway: '192.0.2.1' }],
      },
    })
    expect(contentOf(change.before.files, `${run}/05-edgehostd-eth0.network`)).toBe('absent')
    expect(contentOf(change.kept, `${kept}/05-edgehostd-eth0.network`)).toBe(
      contentOf(change.after.files, `${run}/05-edgehostd-eth0.network`),
    )
  })

  it('to DHCP takes the address and the default route away, and nothing else', async () => {
    const change = await plan({ kind: 'nic', name: 'eth0', addressing: { type: 'dhcp' } })
    const unit = parseUnit(contentOf(change.kept, `${kept}/05-edgehostd-eth0.network`)!)
    expect(networkConfiguration(unit, [])).toMatchObject({
      type: 'dhcp',
      addresses: ['2001:db8:1::20/64'],
      routes: [{ destination: '198.51.100.0/24', gateway: '192.0.2.2' }],
      mtu: 1400,
    })
    expect(networkConfiguration(unit, [])).not.toHaveProperty('gateway')
    // The lease has to come, though the link has an address of IPv6.
    expect(change.after.expected).toEqual([
      { link: 'eth0', addresses: ['2001:db8:1::20/64'], isLeased: true },
    ])
  })

  it('DHCP options stay when another option changes', async () => {
    const change = await plan({ kind: 'nic', name: 'eth1', addressing: { type: 'dhcp', mtu: 1300 } })
    const text = contentOf(change.kept, `${kept}/05-edgehostd-eth1.network`)
    expect(text).toContain('[DHCPv4]\nRouteMetric=300\nUseDNS=no\n')
    expect(text).toContain('[Link]\nMTUBytes=1300\n')
    expect(text).toContain('DHCP=ipv4\n')
  })

  it('of a kept file begins with that file, names the first one that was carried over, and replaces its trial', async () => {
    const first = await plan({ kind: 'nic', name: 'eth0', addressing: static9 })
    const changes = after(first)
    const second = await plan(
      { kind: 'nic', name: 'eth0', addressing: { ...static9, mtu: 1500 } },
      { ...changes, files: { ...changes.files, [`${run}/05-edgehostd-eth0.network`]: 'of the trial' } },
    )
    const text = contentOf(second.kept, `${kept}/05-edgehostd-eth0.network`)
    expect(text).toContain('# Carried over from: /etc/systemd/network/20-mgmt.network\n')
    expect(text).toContain('MTUBytes=1500')
    expect(text?.match(/LLDP/g)).toHaveLength(1)
    expect(contentOf(second.before.files, `${run}/05-edgehostd-eth0.network`)).toBe('of the trial')
  })

  it('that is kept already is no change', async () => {
    const wanted: WantedChange = { kind: 'nic', name: 'eth0', addressing: static9 }
    const reading = await captured('networkd', after(await plan(wanted)))
    expect(planNetworkd(reading, wanted)).toEqual({ kind: 'unchanged' })
  })

  it('is refused where the file in force would come before ours, or one in /etc replaces it', async () => {
    const early = '/etc/systemd/network/00-first.network'
    const reading = await captured('networkd', {
      files: {
        [early]: '[Match]\nName=eth0\n',
        '/etc/systemd/network/05-edgehostd-eth1.network': '[Match]\n',
      },
      output: {
        'networkctl --json=short': changeNetworkctl((all) =>
          all.forEach((link) => link.Name === 'eth0' && Object.assign(link, { NetworkFile: early })),
        ),
      },
    })
    expect(planNetworkd(reading, { kind: 'nic', name: 'eth0', addressing: static9 })).toMatchObject({
      problems: [{ field: 'name', reason: expect.stringContaining('begins with 10-') as string }],
    })
    expect(planNetworkd(reading, { kind: 'nic', name: 'eth1', addressing: static9 })).toMatchObject({
      problems: [{ reason: expect.stringContaining('remove it first') as string }],
    })
  })
})

describe('a bond', () => {
  const bond: WantedChange & { kind: 'bond' } = {
    ...{ kind: 'bond', name: 'bond0', members: ['eth0', 'eth1'] },
    ...{ addressing: { ...static9, address: '192.0.2.20/24' }, options: {} },
  }
  const device = {
    ...{ ifname: 'bond0', ports: ['eth0', 'eth1'] },
    linkinfo: { info_kind: 'bond', info_data: { mode: 'active-backup' } },
  }

  it('has the MAC of the member whose address it takes over, with the IPv6 and the routes of that', async () => {
    const change = await plan(bond)
    expect(contentOf(change.kept, `${kept}/05-edgehostd-bond0.netdev`)).toContain(
      '[NetDev]\nName=bond0\nKind=bond\nMACAddress=82:cc:64:40:cb:8c\n\n[Bond]\nMode=active-backup\nMIIMonitorSec=0.1\n',
    )
    const network = contentOf(change.kept, `${kept}/05-edgehostd-bond0.network`)!
    expect(networkConfiguration(parseUnit(network), [])).toMatchObject({
      addresses: ['192.0.2.20/24', '2001:db8:1::20/64'],
      gateway: '192.0.2.1',
      routes: [{ destination: '198.51.100.0/24', gateway: '192.0.2.2' }],
    })
    expect(contentOf(change.kept, `${kept}/05-edgehostd-eth0.network`)).toContain('Bond=bond0')
    expect(contentOf(change.kept, `${kept}/05-edgehostd-eth0.network`)).not.toContain('Address=')
    expect(change.after).toMatchObject({ devices: ['bond0'], expected: [{ link: 'bond0' }] })
    expect(change.before.devices).toEqual([])
    expect(change.before.expected.map(({ link }) => link)).toEqual(['eth0', 'eth1'])
    expect([...change.links].sort()).toEqual(['bond0', 'eth0', 'eth1'])
  })

  it('by DHCP asks with the IAID of the member that had the lease, and with its options', async () => {
    const change = await plan({ ...bond, members: ['eth1'], addressing: { type: 'dhcp' } })
    const text = contentOf(change.kept, `${kept}/05-edgehostd-bond0.network`)
    // CLIENTID=ff1713798d… of the captured lease.
    expect(text).toContain('[DHCPv4]\nRouteMetric=300\nUseDNS=no\nIAID=387152269\n')
    expect(iaidOfLease('CLIENTID=ff1713798d0002\n')).toBe(387_152_269)
    expect(contentOf(change.kept, `${kept}/05-edgehostd-bond0.netdev`)).toContain('8e:c7:78:18:d9:2f')
  })

  it('with another mode is made anew in both directions, and keeps its other options', async () => {
    const changes = withDevice(after(await plan(bond), { bond0: {} }), device)
    const change = await plan({ ...bond, options: { mode: '802.3ad', lacpTransmitRate: 'fast' } }, changes)
    expect([change.before.devices, change.after.devices]).toEqual([['bond0'], ['bond0']])
    // Its members lose it, and have to join the new one.
    expect([...change.links].sort()).toEqual(['bond0', 'eth0', 'eth1'])
    expect(contentOf(change.kept, `${kept}/05-edgehostd-bond0.netdev`)).toContain(
      'MACAddress=82:cc:64:40:cb:8c\n\n[Bond]\nMode=802.3ad\nMIIMonitorSec=0.1\nLACPTransmitRate=fast\n',
    )
  })

  it('that loses a member gives it back the file of its administrator', async () => {
    const changes = withDevice(after(await plan(bond), { bond0: {} }), device)
    const change = await plan({ ...bond, members: ['eth0'] }, changes)
    expect(contentOf(change.after.files, `${run}/05-edgehostd-eth1.network`)).toBe('masked')
    expect(contentOf(change.kept, `${kept}/05-edgehostd-eth1.network`)).toBe('absent')
    expect(change.after.devices).toEqual([])
  })

  it('is deleted with its files by masks in /run, and its members have the addresses of their own files again', async () => {
    const changes = withDevice(after(await plan(bond), { bond0: {} }), device)
    const change = await plan({ kind: 'delete', of: 'bond', name: 'bond0' }, changes)
    expect(change.after.files.map(({ path, content }) => [path, content])).toEqual(
      ['bond0.network', 'bond0.netdev', 'eth0.network', 'eth1.network'].map((name) => [
        `${run}/05-edgehostd-${name}`,
        'masked',
      ]),
    )
    expect(change.kept.map(({ content }) => content)).toEqual(Array(4).fill('absent'))
    expect(change.before).toMatchObject({ devices: ['bond0'] })
    expect(change.after.expected).toEqual([
      { link: 'eth0', addresses: ['192.0.2.20/24', '2001:db8:1::20/64'], gateway: '192.0.2.1' },
      { link: 'eth1', addresses: [] },
    ])
    expect(change.summary).toBe('bond0: bond removed')
  })
})

describe('a VLAN', () => {
  const vlan: WantedChange = {
    ...{ kind: 'vlan', name: 'eth0.7', parent: 'eth0', parentType: 'nic', id: 7 },
    addressing: { type: 'static', address: '198.18.0.5/24' },
  }

  it('is added to the file of its parent, which keeps its address', async () => {
    const change = await plan(vlan)
    expect(contentOf(change.kept, `${kept}/05-edgehostd-eth0.7.netdev`)).toContain(
      'Kind=vlan\n\n[VLAN]\nId=7\n',
    )
    const parent = contentOf(change.kept, `${kept}/05-edgehostd-eth0.network`)!
    expect(networkConfiguration(parseUnit(parent), [])).toMatchObject({
      vlans: ['eth0.7'],
      addresses: ['192.0.2.20/24', '2001:db8:1::20/64'],
    })
    expect(change.after.expected.map(({ link }) => link)).toEqual(['eth0.7', 'eth0'])
    expect(change.after.devices).toEqual(['eth0.7'])
  })

  it('that is deleted leaves its parent with the file of its administrator', async () => {
    const device = { ifname: 'eth0.7', link: 'eth0', linkinfo: { info_kind: 'vlan', info_data: { id: 7 } } }
    const changes = withDevice(after(await plan(vlan), { 'eth0.7': {} }), device)
    const change = await plan({ kind: 'delete', of: 'vlan', name: 'eth0.7' }, changes)
    expect(contentOf(change.after.files, `${run}/05-edgehostd-eth0.network`)).toBe('masked')
    expect(change.after.expected).toEqual([
      { link: 'eth0', addresses: ['192.0.2.20/24', '2001:db8:1::20/64'] },
    ])
  })
})

describe('a bridge of an administrator', () => {
  it('can be changed and not deleted', async () => {
    const reading = await captured('networkd')
    expect(planNetworkd(reading, { kind: 'delete', of: 'bridge', name: 'br1' })).toMatchObject({
      problems: [
        { reason: expect.stringContaining('/etc/systemd/network/40-br1.netdev; remove it there') as string },
      ],
    })
    const change = await plan({
      ...{ kind: 'bridge', name: 'br1', members: ['eth2'], isStpOn: true },
      addressing: { type: 'static', address: '203.0.113.6/24' },
    })
    // Its .netdev file says the same, so that the device stays.
    expect(change.kept.map(({ path }) => path)).toEqual([`${kept}/05-edgehostd-br1.network`])
    expect(change.links).toEqual(['br1'])
  })

  it('that loses its member leaves that one without a bridge, in a file of ours', async () => {
    const change = await plan({
      ...{ kind: 'bridge', name: 'br1', members: [], isStpOn: true },
      addressing: { type: 'static', address: '203.0.113.5/24' },
    })
    const member = contentOf(change.kept, `${kept}/05-edgehostd-eth2.network`)
    expect(member).toContain('Name=eth2')
    expect(member).not.toContain('Bridge=')
  })
})

describe('the text of a file', () => {
  const change = (text: string, addressing: Addressing) =>
    formatUnit(changeAddressing(forLink(parseUnit(text), 'eth0'), addressing))

  it.each<[string, string, Addressing, string]>([
    [
      'a section of the address keeps its label',
      '[Match]\nName=en*\n[Address]\nAddress=192.0.2.5/24\nLabel=plant\n',
      { type: 'static', address: '192.0.2.9/24' },
      '[Match]\nName=eth0\n\n[Address]\nAddress=192.0.2.9/24\nLabel=plant\n',
    ],
    [
      'a second address stays',
      '[Network]\nAddress=192.0.2.5/24\nAddress=192.0.2.6/24\n',
      { type: 'static', address: '192.0.2.9/24' },
      '[Match]\nName=eth0\n\n[Network]\nAddress=192.0.2.9/24\nAddress=192.0.2.6/24\n',
    ],
    [
      'DHCP of IPv6 stays',
      '[Network]\nDHCP=yes\n',
      { type: 'static', address: '192.0.2.9/24' },
      '[Match]\nName=eth0\n\n[Network]\nDHCP=ipv6\nAddress=192.0.2.9/24\n',
    ],
    [
      'the default route keeps its metric',
      '[Network]\nAddress=192.0.2.5/24\n[Route]\nGateway=192.0.2.1\nMetric=50\n',
      { type: 'static', address: '192.0.2.5/24', gateway: '192.0.2.254' },
      '[Match]\nName=eth0\n\n[Network]\nAddress=192.0.2.5/24\n\n[Route]\nGateway=192.0.2.254\nMetric=50\n',
    ],
    [
      'without a gateway the default route of IPv4 goes, that of IPv6 stays',
      '[Network]\nAddress=192.0.2.5/24\nGateway=192.0.2.1\nGateway=2001:db8::1\n',
      { type: 'static', address: '192.0.2.5/24' },
      '[Match]\nName=eth0\n\n[Network]\nAddress=192.0.2.5/24\nGateway=2001:db8::1\n',
    ],
    [
      'a comment and a continued line stay',
      '[Network]\n# the office\nDNS=192.0.2.1 \\\n  192.0.2.2\nDHCP=ipv4\n',
      { type: 'dhcp', mtu: 1400 },
      '[Match]\nName=eth0\n\n[Link]\nMTUBytes=1400\n\n[Network]\n# the office\nDNS=192.0.2.1    192.0.2.2\nDHCP=ipv4\n',
    ],
    [
      'policy rules and a bridge with VLANs stay',
      '[Network]\nDHCP=ipv4\nVLAN=eth0.5\n[RoutingPolicyRule]\nFrom=192.0.2.0/24\nTable=7\n',
      { type: 'dhcp', nameservers: [] },
      '[Match]\nName=eth0\n\n[Network]\nDHCP=ipv4\nVLAN=eth0.5\n\n[RoutingPolicyRule]\nFrom=192.0.2.0/24\nTable=7\n',
    ],
  ])('%s', (_what, text, addressing, expected) => {
    expect(change(text, addressing)).toBe(expected)
  })
})
