import { beforeAll, describe, expect, it } from 'vitest'
import type { NetworkReading } from '../../../src/network/links/links.ts'
import { judge, type PreflightFacts } from '../../../src/network/preflight/preflight.ts'
import type { Addressing, WantedChange } from '../../../src/network/wanted.ts'
import { captured, changeNetworkctl } from '../../support/network-host.ts'

const facts: PreflightFacts = {
  clusterAddresses: new Set(),
  usesNameservers: () => true,
  hasBus: true,
  hasProgram: () => true,
  dropsAddresses: false,
  released: [],
}
let host: NetworkReading
beforeAll(async () => {
  // eth0 192.0.2.20 with the default route and a route over 192.0.2.2, eth1 by DHCP with a default route of the metric 300, eth2 in br1 203.0.113.5
  host = await captured('networkd')
})

/** The host without the second link in the same network. */
const without = (name: string, reading = host): NetworkReading => ({
  ...reading,
  links: reading.links.filter((link) => link.name !== name),
})
const problemsOf = (reading: NetworkReading, wanted: WantedChange, more: Partial<PreflightFacts> = {}) =>
  judge(reading, wanted, { ...facts, ...more }).problems.map(({ field, reason }) => `${field} ${reason}`)
const nic = (addressing: Addressing, name = 'eth0'): WantedChange => ({ kind: 'nic', name, addressing })
const fixed = (address: string, gateway?: string): Addressing => ({
  ...{ type: 'static', address },
  ...(gateway === undefined ? {} : { gateway }),
})

describe('the address of a NIC', () => {
  it('of its network, with its gateway, is accepted, and the judgement says how the host is reached then', () => {
    const { problems, backend, lostRoutes, reachableBy } = judge(
      without('eth1'),
      nic(fixed('192.0.2.9/24', '192.0.2.1')),
      facts,
    )
    expect([problems, backend, lostRoutes]).toEqual([[], 'networkd', []])
    expect(reachableBy).toEqual(['192.0.2.9', '203.0.113.5'])
  })

  it.each<[string, Addressing, RegExp]>([
    [
      'a gateway outside of it',
      fixed('192.0.2.9/24', '198.51.100.1'),
      /^gateway 198.51.100.1 is not in the network 192.0.2.0\/24/,
    ],
    [
      'itself as its gateway',
      fixed('192.0.2.9/24', '192.0.2.9'),
      /^gateway is 192.0.2.9, the address of the host itself/,
    ],
    [
      'the broadcast address as its gateway',
      fixed('192.0.2.9/24', '192.0.2.255'),
      /^gateway .* is no address for a host/,
    ],
    [
      'the address of its network',
      fixed('192.0.2.0/24', '192.0.2.1'),
      /^ip 192.0.2.0 is no address for a host/,
    ],
    [
      'the network of another link',
      fixed('203.0.113.9/24', '203.0.113.1'),
      /^ip 203.0.113.0\/24 is the network of br1 too/,
    ],
    [
      'an address of another link',
      fixed('203.0.113.5/24', '203.0.113.1'),
      /^ip 203.0.113.5 is an address of br1/,
    ],
    [
      'no default route for the host',
      fixed('192.0.2.9/24'),
      /^gateway would leave this host without a default route: that of eth0 over 192.0.2.1/,
    ],
  ])('with %s is refused', (_what, addressing, expected) => {
    expect(problemsOf(without('eth1'), nic(addressing))).toEqual([expect.stringMatching(expected)])
  })

  it('says which routes go', () => {
    expect(judge(without('eth1'), nic(fixed('198.18.0.9/24', '198.18.0.1')), facts).lostRoutes).toEqual([
      'default via 192.0.2.1 of eth0',
      '198.51.100.0/24 via 192.0.2.2 of eth0',
    ])
  })

  it('several problems are said at once', () => {
    const problems = problemsOf(
      host,
      nic({ ...fixed('203.0.113.9/24', '192.0.2.1'), nameservers: ['192.0.2.1'] }),
      {
        usesNameservers: () => false,
        hasProgram: (name) => name !== 'arping',
      },
    )
    expect(problems).toEqual([
      expect.stringContaining('apt-get install iputils-arping'),
      expect.stringContaining('nameservers would be used by nothing: apt-get install systemd-resolved'),
      expect.stringContaining('gateway 192.0.2.1 is not in the network'),
      expect.stringContaining('is the network of br1 too'),
    ])
  })

  it('with a second default route of the same metric is refused, with another metric accepted', async () => {
    // The route of eth1 has the metric 300, that of eth0 none.
    expect(problemsOf(without('eth0'), nic(fixed('198.18.0.9/24', '198.18.0.1'), 'eth1'))).toEqual([])
    const twice = {
      ...host,
      links: host.links.map((link) =>
        link.name === 'eth1'
          ? { ...link, routes: link.routes.map((route) => ({ ...route, metric: 0 })) }
          : link,
      ),
    }
    expect(problemsOf(twice, nic(fixed('198.18.0.9/24', '198.18.0.1')))).toEqual([
      expect.stringMatching(
        /^gateway makes a second default route of the metric 0: eth1 has one over 192.0.2.1/,
      ),
    ])
  })

  it('in its network is accepted beside another link there, since that was so before', () => {
    expect(problemsOf(host, nic({ ...fixed('192.0.2.20/24', '192.0.2.1'), mtu: 1300 }))).toEqual([])
    expect(problemsOf(host, nic(fixed('192.0.2.9/24', '192.0.2.1')))).toEqual([])
  })

  it('of the cluster stays: only MTU, gateway and name servers change', () => {
    const cluster = { clusterAddresses: new Set(['192.0.2.20']) }
    const one = without('eth1')
    expect(problemsOf(one, nic(fixed('192.0.2.9/24', '192.0.2.1')), cluster)).toEqual([
      expect.stringMatching(/^ip would take 192.0.2.20 from eth0, which is the address of the cluster/),
    ])
    expect(problemsOf(one, nic({ type: 'dhcp' }), cluster)).toHaveLength(1)
    const same = { ...fixed('192.0.2.20/24', '192.0.2.1'), mtu: 1300 }
    expect(problemsOf(one, nic(same), cluster)).toEqual([])
  })

  it('of a member of a bridge is refused, and so is a link that is no NIC or is not there', () => {
    expect(problemsOf(host, nic({ type: 'dhcp' }, 'eth2'))).toEqual([
      expect.stringMatching(/^name eth2 is a member of br1/),
    ])
    expect(problemsOf(host, nic({ type: 'dhcp' }, 'br1'))[0]).toContain('network/bridges/br1')
    expect(problemsOf(host, nic({ type: 'dhcp' }, 'eth7'))).toEqual(['name eth7 is no link of this host'])
  })

  it('with a larger MTU than the driver takes is refused: the backends would leave it as it is', () => {
    const limited = {
      ...without('eth1'),
      links: without('eth1').links.map((link) => ({ ...link, maxMtu: 1500 })),
    }
    const jumbo = { ...fixed('192.0.2.20/24', '192.0.2.1'), mtu: 9000 }
    expect(problemsOf(limited, nic(jumbo))).toEqual(['mtu is 9000, and eth0 takes 1500 at most'])
    expect(problemsOf(without('eth1'), nic(jumbo))).toEqual([])
    const bridge: WantedChange = { kind: 'bridge', name: 'br7', addressing: jumbo, members: ['eth0'] }
    expect(problemsOf(limited, bridge)).toEqual(['mtu is 9000, and eth0 takes 1500 at most'])
  })

  it('without a system bus is refused with the package', () => {
    expect(problemsOf(without('eth1'), nic({ type: 'dhcp' }), { hasBus: false })).toEqual([
      expect.stringContaining('apt-get install dbus'),
    ])
  })
})

describe('a bond', () => {
  const bond = (members: readonly string[], addressing: Addressing): WantedChange => ({
    ...{ kind: 'bond', name: 'bond0', options: {} },
    ...{ members, addressing },
  })

  it('takes over the address of a member', () => {
    expect(problemsOf(without('eth1'), bond(['eth0'], fixed('192.0.2.20/24', '192.0.2.1')))).toEqual([])
    expect(problemsOf(host, bond(['eth1'], { type: 'dhcp' }))).toEqual([])
  })

  it('that would lose the address of a member is refused, unless addresses may go', () => {
    const wanted = bond(['eth0', 'eth1'], fixed('192.0.2.20/24', '192.0.2.1'))
    expect(problemsOf(host, wanted)).toEqual([
      expect.stringMatching(
        /^members\[1\] eth1 has the address 192.0.2.129, which bond0 does not take over; .*dropAddress=true/,
      ),
    ])
    expect(problemsOf(host, wanted, { dropsAddresses: true })).toEqual([])
  })

  it('of members that are missing, in use, no NIC or with the address of the cluster is refused for each', () => {
    expect(
      problemsOf(
        without('eth1'),
        bond(['eth0', 'eth2', 'eth7', 'br1'], fixed('192.0.2.20/24', '192.0.2.1')),
        {
          clusterAddresses: new Set(['192.0.2.20']),
          dropsAddresses: true,
        },
      ),
    ).toEqual([
      expect.stringMatching(/^members\[0\] eth0 has the address of the cluster/),
      expect.stringMatching(/^members\[1\] eth2 is a member of br1/),
      expect.stringMatching(/^members\[2\] eth7 is no link/),
      expect.stringMatching(/^members\[3\] br1 is a bridge, which cannot be a member of a bond/),
    ])
  })

  it('of a link that nobody configures belongs to the program of the default route', async () => {
    const reading = await captured('networkd', {
      output: {
        'networkctl --json=short': changeNetworkctl((all) =>
          all.forEach(
            (link) => link.Name === 'eth1' && Object.assign(link, { AdministrativeState: 'unmanaged' }),
          ),
        ),
      },
    })
    const wanted = bond(['eth1'], { type: 'none' })
    expect(judge(reading, wanted, { ...facts, dropsAddresses: true })).toMatchObject({
      problems: [],
      backend: 'networkd',
    })
  })

  it('of members of two programs is refused', () => {
    const links = host.links.map((link) =>
      link.name === 'eth1'
        ? { ...link, owner: { ...link.owner, backend: 'ifupdown' as const, name: 'ifupdown' } }
        : link,
    )
    expect(
      problemsOf({ ...host, links }, bond(['eth0', 'eth1'], fixed('192.0.2.20/24', '192.0.2.1')), {
        dropsAddresses: true,
      }),
    ).toEqual([
      expect.stringMatching(
        /^members are configured by two programs: eth0 by systemd-networkd, eth1 by ifupdown/,
      ),
    ])
  })
})

describe('a VLAN', () => {
  const vlan = (
    parent: string,
    addressing: Addressing,
    parentType: 'nic' | 'bond' = 'nic',
  ): WantedChange => ({
    ...{ kind: 'vlan', name: `${parent}.7`, id: 7 },
    ...{ parent, parentType, addressing },
  })

  it('on a NIC is accepted, and takes nothing from it', () => {
    expect(judge(host, vlan('eth0', fixed('198.18.0.5/24')), facts)).toMatchObject({
      problems: [],
      lostRoutes: [],
    })
  })

  it('on a member, on a link of another kind or on none, or with more MTU than its parent is refused', () => {
    expect(problemsOf(host, vlan('eth2', { type: 'dhcp' }))).toEqual([
      expect.stringMatching(/^parentName eth2 is a member of br1/),
    ])
    expect(problemsOf(host, vlan('eth0', { type: 'dhcp' }, 'bond'))).toEqual([
      'parentType is bond, and eth0 is a NIC',
    ])
    expect(problemsOf(host, vlan('eth7', { type: 'dhcp' }))[0]).toBe(
      'parentName eth7 is no link of this host',
    )
    expect(problemsOf(host, vlan('eth0', { type: 'dhcp', mtu: 1500 }))).toEqual([
      'mtu is 1500, and eth0 has 1400; raise that first',
    ])
  })
})

describe('a deletion', () => {
  const deletion = (of: 'bond' | 'vlan' | 'bridge', name: string): WantedChange => ({
    kind: 'delete',
    of,
    name,
  })

  it('of a link of another kind, or of one with an address of the cluster, is refused', () => {
    expect(problemsOf(host, deletion('bridge', 'br1'))).toEqual([])
    expect(problemsOf(host, deletion('bond', 'br1'))).toEqual(['name br1 is a bridge, not a bond'])
    expect(
      problemsOf(host, deletion('bridge', 'br1'), { clusterAddresses: new Set(['203.0.113.5']) })[0],
    ).toContain('cluster')
  })

  it('of a link with VLANs, or of the only default route, is refused', () => {
    const [eth0, , , br1] = host.links
    const vlan = { ...br1!, name: 'br1.7', kind: 'vlan' as const, vlan: { id: 7, parent: 'br1' } }
    const only = { ...br1!, routes: eth0!.routes }
    expect(problemsOf({ ...host, links: [only, vlan] }, deletion('bridge', 'br1'))).toEqual([
      expect.stringMatching(/^name br1 carries the VLAN br1.7/),
      expect.stringMatching(/^name would leave this host without a default route/),
    ])
  })
})

it('a deletion after which a member has the default route of its own file is accepted, with that address', async () => {
  const reading = await captured('networkd')
  const [eth0, , eth2, br1] = reading.links
  const links = [eth2!, { ...br1!, routes: eth0!.routes.slice(0, 1) }]
  const wanted = { kind: 'delete', of: 'bridge', name: 'br1' } as const
  const released = [{ link: 'eth2', addresses: ['192.0.2.20/24'], gateway: '192.0.2.1' }]
  expect(judge({ ...reading, links }, wanted, { ...facts, released })).toMatchObject({
    problems: [],
    lostRoutes: [],
    reachableBy: ['192.0.2.20'],
  })
})
