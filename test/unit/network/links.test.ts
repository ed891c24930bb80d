import { describe, expect, it } from 'vitest'
import { parseKernelLinks, shownLinks } from '../../../src/network/links/kernel.ts'
import type { Link } from '../../../src/network/links/links.ts'
import {
  notWritable,
  shownAddress,
  toBond,
  toBridge,
  toNic,
  toVlan,
  typeOf,
} from '../../../src/network/wire.ts'
import { captured, changeNetworkctl, type CapturedBackend } from '../../support/network-host.ts'

const shown = { clusterAddresses: new Set(['192.0.2.20']) }
const named = (links: readonly Link[], name: string) => links.find((link) => link.name === name)!

describe.each<[CapturedBackend, { owner: string; file: string; status: string }]>([
  [
    'networkd',
    { owner: 'systemd-networkd', file: '/etc/systemd/network/20-mgmt.network', status: 'configured' },
  ],
  [
    'netplan',
    { owner: 'netplan', file: '/run/systemd/network/10-netplan-eth0.network', status: 'configured' },
  ],
  [
    'networkmanager',
    {
      owner: 'NetworkManager',
      file: '/etc/NetworkManager/system-connections/plant.nmconnection',
      status: 'connected',
    },
  ],
  ['ifupdown', { owner: 'ifupdown', file: '/etc/network/interfaces', status: 'configured' }],
])('on a host of %s', (backend, { owner, file, status }) => {
  it('the links are its NICs and its bridge, each with its owner, and nothing is unreadable', async () => {
    const { links, problems } = await captured(backend)
    expect(problems).toEqual([])
    expect(links.map(({ name, kind, owner: { name: by } }) => [name, kind, by])).toEqual([
      ['eth0', 'nic', owner],
      ['eth1', 'nic', owner],
      ['eth2', 'nic', owner],
      ['br1', 'bridge', owner],
    ])
  })

  it('a NIC shows what runs and what its files say: both families, routes, domains, MTU', async () => {
    const { links } = await captured(backend)
    const nic = toNic(named(links, 'eth0'), links, shown)
    expect(nic).toMatchObject({
      ...{ status: 'up', configStatus: status, type: 'static', isWritable: true, isClusterNIC: true },
      ...{ ip: '192.0.2.20', subnet: '255.255.255.0', gateway: '192.0.2.1', mtu: 1400 },
      ...{ nameservers: ['192.0.2.1'], bondName: '', bridgeName: '' },
      configured: {
        type: 'static',
        addresses: ['192.0.2.20/24', '2001:db8:1::20/64'],
        gateway: '192.0.2.1',
        mtu: 1400,
        nameservers: ['192.0.2.1'],
        routes: [{ destination: '198.51.100.0/24', gateway: '192.0.2.2' }],
      },
    })
    expect(nic.configured?.files[0]).toBe(file)
    expect(nic.searchDomains).toContain('plant.example')
    expect(nic.configured?.searchDomains).toContain('plant.example')
    expect(nic.addresses.map(({ address, family }) => [address, family])).toContainEqual([
      '2001:db8:1::20',
      'ipv6',
    ])
    // Of two NICs in one network the kernel takes the one that came up first.
    expect(links.flatMap(({ routes }) => routes)).toContainEqual(
      expect.objectContaining({ destination: '198.51.100.0/24', gateway: '192.0.2.2', family: 'ipv4' }),
    )
  })

  it('a leased address is of the type dhcp, with the metric of its file', async () => {
    const { links } = await captured(backend)
    const nic = toNic(named(links, 'eth1'), links, shown)
    expect(nic).toMatchObject({
      type: 'dhcp',
      subnet: '255.255.255.0',
      configured: { type: 'dhcp', metric: 300 },
    })
    expect(nic.addresses[0]).toMatchObject({ family: 'ipv4', isDynamic: true })
  })

  it('a bridge has its members and its spanning tree, and the member names its bridge', async () => {
    const { links } = await captured(backend)
    expect(toBridge(named(links, 'br1'), links, shown)).toMatchObject({
      ...{ members: ['eth2'], stpEnabled: true, type: 'static', ip: '203.0.113.5', subnet: '255.255.255.0' },
    })
    expect(toNic(named(links, 'eth2'), links, shown)).toMatchObject({ bridgeName: 'br1', bondName: '' })
    expect(toNic(named(links, 'eth2'), links, shown)).not.toHaveProperty('ip')
  })
})

describe('the owner of a link', () => {
  it('drop-ins of a file of networkd are in force after it, and those in /etc win', async () => {
    const folder = '/run/systemd/network/20-mgmt.network.d'
    const { links } = await captured('networkd', {
      files: {
        [`${folder}/mtu.conf`]: '[Link]\nMTUBytes=900\n',
        [`${folder}/zz.conf`]: '[Network]\nDNS=\nDNS=192.0.2.53\n',
      },
    })
    expect(named(links, 'eth0').owner.configured).toMatchObject({
      mtu: 1400,
      nameservers: ['192.0.2.53'],
      files: [
        '/etc/systemd/network/20-mgmt.network',
        '/etc/systemd/network/20-mgmt.network.d/mtu.conf',
        `${folder}/zz.conf`,
      ],
    })
  })

  it('without a system bus networkctl fails, and the state files of networkd say who owns a link', async () => {
    const { links, problems } = await captured('networkd', {
      output: {
        'networkctl --json=short': () => new Error('Failed to connect to bus: No such file or directory'),
      },
      files: { '/sys/class/net/eth0/ifindex': '2\n', '/sys/class/net/eth1/ifindex': '3\n' },
    })
    expect(problems).toEqual(['networkctl: Failed to connect to bus: No such file or directory'])
    expect(named(links, 'eth0')).toMatchObject({
      owner: { backend: 'networkd', status: 'configured', configured: { mtu: 1400 } },
      searchDomains: ['plant.example', '~corp.example'],
    })
  })

  it('a link that networkd does not manage is of nobody, and says what to do', async () => {
    const { links } = await captured('networkd', {
      output: {
        'networkctl --json=short': changeNetworkctl((all) =>
          all.forEach(
            (link) => link.Name === 'eth1' && Object.assign(link, { AdministrativeState: 'unmanaged' }),
          ),
        ),
      },
    })
    const link = named(links, 'eth1')
    expect(link.owner).toMatchObject({ name: 'nobody', status: 'unmanaged' })
    expect(link.owner.backend).toBeUndefined()
    expect(notWritable(link)).toMatch(/none of systemd-networkd.*configure it with one of them first/)
    // Its address has a lifetime.
    expect(typeOf(link)).toBe('dhcp')
  })

  it('a link that NetworkManager has found configured by others does not count as its own', async () => {
    const devices = 'nmcli --terse --fields DEVICE,TYPE,STATE,CON-UUID device'
    const { links } = await captured('networkmanager', {
      output: {
        [devices]: (text) =>
          text.replace('eth1:ethernet:connected:', 'eth1:ethernet:connected (externally):'),
      },
    })
    expect(named(links, 'eth1').owner.name).toBe('nobody')
  })

  it('a profile that NetworkManager generated owns nothing', async () => {
    const path = '/etc/NetworkManager/system-connections/second.nmconnection'
    const { links } = await captured('networkmanager', {
      files: { [path]: '[connection]\nid=eth1\n[.nmmeta]\nnm-generated=true\n' },
    })
    expect(named(links, 'eth1').owner.name).toBe('nobody')
  })

  it('a profile of netplan is readable, and is changed with netplan', async () => {
    const path = '/run/NetworkManager/system-connections/netplan-eth1.nmconnection'
    const { links } = await captured('networkmanager', {
      files: { [path]: '[connection]\nid=netplan-eth1\ninterface-name=eth1\n[ipv4]\nmethod=auto\n' },
      output: {
        'nmcli --terse --fields NAME,UUID,TYPE,DEVICE,FILENAME connection': (text) =>
          text.replace('/etc/NetworkManager/system-connections/second.nmconnection', path),
      },
    })
    const link = named(links, 'eth1')
    expect(link.owner).toMatchObject({ name: 'netplan with NetworkManager', configured: { type: 'dhcp' } })
    expect(notWritable(link)).toBe('is configured by netplan with NetworkManager; change it there')
  })

  it('a link that two programs configure is named with both, and cannot be changed', async () => {
    const { links } = await captured('ifupdown', {
      files: {
        '/sys/fs/cgroup/system.slice/systemd-networkd.service/cgroup.events': 'populated 1\n',
        '/sys/class/net/eth0/ifindex': '2\n',
        '/run/systemd/netif/links/2': 'ADMIN_STATE=configured\nNETWORK_FILE=/etc/systemd/network/9.network\n',
        '/etc/systemd/network/9.network': '[Match]\nName=eth0\n[Network]\nDHCP=yes\n',
      },
    })
    expect(named(links, 'eth0').owner.name).toBe('systemd-networkd and ifupdown')
    expect(notWritable(named(links, 'eth0'))).toMatch(/at the same time; remove it from/)
    expect(notWritable(named(links, 'eth1'))).toBeUndefined()
  })
})

describe('the links of the kernel', () => {
  const base = { flags: ['UP', 'LOWER_UP'], mtu: 1500, link_type: 'ether', address: '02:00:00:00:00:01' }
  const parse = (links: readonly object[], routes: readonly object[] = []) =>
    parseKernelLinks(
      JSON.stringify(links.map((link, index) => ({ ...base, ifindex: index + 1, addr_info: [], ...link }))),
      JSON.stringify(routes),
    ) ?? []
  const hardware = { isVirtual: false, isWifi: false, isEndOfAnother: false, isOfPods: false }
  const virtual = { ...hardware, isVirtual: true }

  it('a bond has its options, its members their own addresses of the hardware, and a VLAN its parent', () => {
    const links = parse([
      {
        ifname: 'eth0',
        master: 'bond0',
        linkinfo: { info_slave_kind: 'bond', info_slave_data: { perm_hwaddr: '02:00:00:00:00:aa' } },
      },
      {
        ifname: 'bond0',
        linkinfo: {
          info_kind: 'bond',
          info_data: { mode: '802.3ad', miimon: 100, ad_lacp_rate: 'fast', xmit_hash_policy: 'layer3+4' },
        },
      },
      {
        ifname: 'bond0.7',
        link: 'bond0',
        linkinfo: { info_kind: 'vlan', info_data: { protocol: '802.1Q', id: 7 } },
      },
    ])
    const all = shownLinks(
      links,
      (name) => (name === 'eth0' ? hardware : virtual),
      () => false,
    ).map((link): Link => ({
      ...link,
      owner: { name: 'nobody', status: 'unmanaged' },
      ...{ nameservers: [], searchDomains: [], vlans: [] },
      members: link.kind === 'bond' ? ['eth0'] : [],
    }))
    expect(all.map(({ kind }) => kind)).toEqual(['nic', 'bond', 'vlan'])
    expect(toNic(all[0]!, all, shown)).toMatchObject({ bondName: 'bond0', mac: '02:00:00:00:00:aa' })
    expect(toBond(all[1]!, all, shown)).toMatchObject({
      ...{ mode: '802.3ad', miiMonitorSec: '0.1', lacpTransmitRate: 'fast', transmitHashPolicy: 'layer3+4' },
      members: ['eth0'],
    })
    expect(toVlan(all[2]!, all, shown)).toMatchObject({
      parentName: 'bond0',
      parentType: 'bond',
      vlanID: '7',
    })
  })

  it('interfaces of pods and containers are left out, and a bridge only counts when somebody configured it', () => {
    const links = parse([
      { ifname: 'enp1s0' },
      { ifname: 'wlan0' },
      { ifname: 'docker0', linkinfo: { info_kind: 'bridge' } },
      { ifname: 'vethab', master: 'docker0', linkinfo: { info_kind: 'veth' } },
      { ifname: 'cali123', linkinfo: { info_kind: 'veth' } },
      { ifname: 'plant', linkinfo: { info_kind: 'bridge' } },
      { ifname: 'dummy0', linkinfo: { info_kind: 'dummy' } },
      { ifname: 'tun0', link_type: 'none', linkinfo: { info_kind: 'tun' } },
    ])
    const factsOf = (name: string) =>
      name === 'wlan0'
        ? { ...hardware, isWifi: true }
        : name === 'enp1s0'
          ? hardware
          : { ...virtual, isEndOfAnother: true }
    const namesOf = (isConfigured: (name: string) => boolean) =>
      shownLinks(links, factsOf, isConfigured).map(({ name }) => name)
    expect(namesOf(() => false)).toEqual(['enp1s0', 'wlan0'])
    expect(namesOf((name) => name === 'plant')).toEqual(['enp1s0', 'wlan0', 'plant'])
  })

  it('an address held for a cluster is not shown as the address of the link', () => {
    const address = (local: string, prefixlen: number) => ({
      ...{ family: 'inet', local, prefixlen, scope: 'global', valid_life_time: 4294967295 },
    })
    const [link] = parse([
      { ifname: 'eth0', addr_info: [address('192.0.2.99', 32), address('192.0.2.9', 24)] },
    ])
    const whole = {
      ...link!,
      ...{ kind: 'nic' as const, owner: { name: 'nobody', status: '' } },
      ...{ nameservers: [], searchDomains: [], members: [], vlans: [] },
    }
    expect(shownAddress(whole)?.address).toBe('192.0.2.9')
  })

  it('routes of several next hops are of each of their links, and those of the table local are left out', () => {
    const [one, two] = parse(
      [{ ifname: 'eth0' }, { ifname: 'eth1' }],
      [
        {
          dst: 'default',
          nexthops: [
            { gateway: '192.0.2.1', dev: 'eth0' },
            { gateway: '198.51.100.1', dev: 'eth1' },
          ],
          metric: 5,
        },
        { type: 'local', dst: '192.0.2.9', dev: 'eth0', table: 'local' },
        { dst: 'default', gateway: 'fe80::1', dev: 'eth1', protocol: 'ra', metric: 1024, pref: 'medium' },
      ],
    )
    expect(one?.routes).toEqual([
      expect.objectContaining({ destination: 'default', gateway: '192.0.2.1', metric: 5, family: 'ipv4' }),
    ])
    expect(two?.routes.map(({ family }) => family)).toEqual(['ipv4', 'ipv6'])
  })
})
