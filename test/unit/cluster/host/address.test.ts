import { describe, expect, it } from 'vitest'
import {
  addressUnitText,
  missingAddress,
  parseIpv4Routes,
  parseIpv6Routes,
  placeEndpoint,
} from '../../../../src/cluster/host/address.ts'
import { parseArp } from '../../../../src/host/network/answering-device.ts'
import { spellSubnet } from '../../../../src/base/subnet.ts'

const ipv4Routes = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	01004D0A	0003	0	0	0	00000000	0	0	0
eth0	00004D0A	00000000	0001	0	0	0	00FFFFFF	0	0	0
plant0	00001EAC	00000000	0001	0	0	0	FCFFFFFF	0	0	0
eth0	0000A8C0	01004D0A	0003	0	0	0	0000FFFF	0	0	0
*	0001000A	00000000	0200	0	0	0	00FFFFFF	0	0	0
`
const ipv6Routes = `fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
fe800000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000002 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000003 00000000 00000003     eth0
fd000000000000000000000000000011 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000004 00000000 80200001     eth0
fd000000000000010000000000000000 40 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000003 00000000 00000003     eth0
ff000000000000000000000000000000 08 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000004 00000000 00000001     eth0
`
const routes = [...parseIpv4Routes(ipv4Routes), ...parseIpv6Routes(ipv6Routes)]
const networks = { addresses: new Set(['127.0.0.1', '10.77.0.11', 'fd00::11']), routes }

it('the routes of this host are those that are up and no default routes', () => {
  expect(routes.map((each) => [spellSubnet(each.subnet), each.networkInterface, each.isConnected])).toEqual([
    ['10.77.0.0/24', 'eth0', true],
    ['172.30.0.0/30', 'plant0', true],
    ['192.168.0.0/16', 'eth0', false],
    ['fd00::/64', 'eth0', true],
    ['fd00:0:0:1::/64', 'eth0', false],
  ])
})

describe('the address of the control plane', () => {
  it.each(['', ' ', '10.77.0.11', 'fd00::11', 'FD00:0::11'])('%j is the one of this host', (host) => {
    expect(placeEndpoint(host, networks)).toEqual({ kind: 'own' })
  })

  it.each([
    ['10.77.0.50', '10.77.0.50', 'eth0'],
    ['172.30.0.2', '172.30.0.2', 'plant0'],
    ['fd00:0:0:0::50', 'fd00::50', 'eth0'],
  ])('%s is held as %s at %s', (host, address, networkInterface) => {
    expect(placeEndpoint(host, networks)).toEqual({
      kind: 'virtual',
      virtualAddress: { address, networkInterface },
    })
  })

  it.each([
    ['plant.example', 'is not an IP address'],
    ['10.77.0.50/24', 'is not an IP address'],
    ['127.0.0.2', 'is not an address that other hosts can reach'],
    ['::1', 'is not an address that other hosts can reach'],
    ['fe80::1', 'is not an address that other hosts can reach'],
    ['224.0.0.1', 'is not an address that other hosts can reach'],
    ['0.0.0.0', 'is not an address that other hosts can reach'],
    [
      '10.77.1.50',
      'is in no network of this host; take a free one of 10.77.0.0/24, 172.30.0.0/30, fd00::/64',
    ],
    // Only by a gateway.
    ['192.168.0.50', 'is in no network of this host'],
    ['10.77.0.0', 'is reserved in the network 10.77.0.0/24'],
    ['10.77.0.255', 'is reserved in the network 10.77.0.0/24'],
    ['172.30.0.3', 'is reserved in the network 172.30.0.0/30'],
    ['fd00::', 'is reserved in the network fd00::/64'],
  ])('%s %s', (host, reason) => {
    const place = placeEndpoint(host, networks)
    expect(place).toMatchObject({
      kind: 'refused',
      problem: {
        code: 'EndpointInvalid',
        severity: 'error',
        path: 'spec.cloudConfig.spec.clusterConfig.controlPlaneEndpoint.host',
      },
    })
    expect(place.kind === 'refused' && place.problem.message).toContain(`${JSON.stringify(host)} ${reason}`)
  })
})

describe('the unit of the address', () => {
  it('adds it alone, without a network, and again after its removal', () => {
    const text = addressUnitText({ address: '10.77.0.50', networkInterface: 'eth0' })
    expect(text).toContain("ip address replace 10.77.0.50/32 dev eth0'")
    expect(text).toContain(
      'in "Deleted "*" 10.77.0.50/32 "*) ip address replace 10.77.0.50/32 dev eth0 || kill 0;; esac',
    )
    expect(text).toContain('WantedBy=multi-user.target')
  })

  it('does not let an IPv6 address be a source of connections, nor wait for its check', () => {
    const text = addressUnitText({ address: 'FD00::0:50', networkInterface: 'eth0.7' })
    expect(text).toContain("ip address replace fd00::50/128 dev eth0.7 nodad preferred_lft 0'")
  })

  it.each([
    ['10.77.0.50; reboot', 'eth0'],
    ['10.77.0.50', "eth0'; reboot"],
    ['10.77.0.50', 'a name that is too long'],
    ['10.77.0.50', '..'],
  ])('is not made for %j at %j', (address, networkInterface) => {
    expect(() => addressUnitText({ address, networkInterface })).toThrow('cannot be held by a unit')
  })
})

it('a device has answered if its entry in the table of ARP is complete', () => {
  const text = `IP address       HW type     Flags       HW address            Mask     Device
10.77.0.5        0x1         0x2         02:fc:00:00:00:05     *        eth0
10.77.0.50       0x1         0x0         00:00:00:00:00:00     *        eth0
`
  expect(parseArp(text, '10.77.0.5')).toBe('02:fc:00:00:00:05')
  expect(parseArp(text, '10.77.0.50')).toBeUndefined()
  expect(parseArp(text, '10.77.0.51')).toBeUndefined()
})

it.each([
  ['it is there', '192.0.2.10', ['127.0.0.1', '192.0.2.10', '198.51.100.7'], false],
  ['another lease has taken its place', '192.0.2.10', ['127.0.0.1', '198.51.100.7'], true],
  ['none is left', '192.0.2.10', ['127.0.0.1', '::1', 'fe80::1'], true],
  ['one of IPv6 is gone', '2001:db8::7', ['::1', '2001:db8::8'], true],
  ['one of IPv6 is spelt otherwise', '2001:DB8:0::7', ['2001:db8::7'], false],
])('an address of the node, while %s', (_while, address, addresses, isMissing) => {
  const networks = { addresses: new Set(addresses), routes: [] }
  const said = missingAddress({ address, endpoint: address }, networks)
  expect(said !== undefined).toBe(isMissing)
  if (said === undefined) return
  expect(said).toContain(`the address ${address} of the node is not on this host any more`)
  expect(said).toContain(`ip address add ${address}/PREFIX dev`)
  expect(said).toContain('edgehostctl cluster delete')
})

it('another address of this host that is the one of the control plane is missed too, a virtual one has its unit', () => {
  const networks = { addresses: new Set(['192.0.2.10']), routes: [] }
  const node = { address: '192.0.2.10', endpoint: '203.0.113.9' }
  expect(missingAddress(node, networks)).toContain('203.0.113.9')
  const virtualAddress = { address: node.endpoint, networkInterface: 'eth0' }
  expect(missingAddress({ ...node, virtualAddress }, networks)).toBeUndefined()
})
