import { expect, it } from 'vitest'
import { changesWayOut, isConfiguredSo } from '../../../src/network/planner.ts'
import type { NetworkReading } from '../../../src/network/links/links.ts'
import { captured } from '../../support/network-host.ts'
import type { WantedChange } from '../../../src/network/wanted.ts'

const configured = { type: 'static', gateway: '192.0.2.1', nameservers: ['192.0.2.53'] }
const link = (name: string, more: object = {}) => ({
  name,
  owner: { backend: 'networkd', configured, ...more },
})
const reading = {
  links: [
    link('eth0'),
    link('eth1', { configured: { type: 'dhcp', nameservers: [] } }),
    link('eth2', { configured: undefined }),
  ],
} as unknown as NetworkReading
const nic = (name: string, addressing: object) => ({ kind: 'nic', name, addressing }) as WantedChange
const same = { type: 'static', address: '192.0.2.7/24', gateway: '192.0.2.1' }

it.each<[string, WantedChange, boolean]>([
  ['another address', nic('eth0', same), false],
  ['the same name servers', nic('eth0', { ...same, nameservers: ['192.0.2.53'] }), false],
  ['another gateway', nic('eth0', { ...same, gateway: '192.0.2.2' }), true],
  ['no gateway', nic('eth0', { type: 'static', address: '192.0.2.7/24' }), true],
  ['other name servers', nic('eth0', { ...same, nameservers: ['192.0.2.54'] }), true],
  ['no name servers', nic('eth0', { ...same, nameservers: [] }), true],
  ['DHCP in place of an address', nic('eth0', { type: 'dhcp' }), true],
  ['an MTU under DHCP', nic('eth1', { type: 'dhcp', mtu: 1400 }), false],
  ['an address in place of DHCP', nic('eth1', same), true],
  [
    'an address without a gateway on a link without anything',
    nic('eth2', { type: 'static', address: '192.0.2.7/24' }),
    false,
  ],
  ['the deletion of a link with a gateway', { kind: 'delete', of: 'bridge', name: 'eth0' }, true],
  ['the deletion of a link without anything', { kind: 'delete', of: 'bridge', name: 'eth2' }, false],
  [
    'a bridge that takes over the gateway of its member, and not its name servers',
    {
      kind: 'bridge',
      name: 'br0',
      members: ['eth0'],
      addressing: { ...same, nameservers: [] },
    } as WantedChange,
    true,
  ],
  [
    'a bridge that takes over all of its member',
    { kind: 'bridge', name: 'br0', members: ['eth0'], addressing: same } as WantedChange,
    false,
  ],
])('%s', (_what, wanted, changes) => {
  expect(changesWayOut(reading, wanted)).toBe(changes)
})

it.each<[string, object, boolean]>([
  ['what the file of the administrator says', {}, true],
  ['the same with its MTU and name servers', { mtu: 1400, nameservers: ['192.0.2.1'] }, true],
  ['another address', { address: '192.0.2.21/24' }, false],
  ['another mask', { address: '192.0.2.20/25' }, false],
  ['another gateway', { gateway: '192.0.2.3' }, false],
  ['no gateway', { gateway: undefined }, false],
  ['another MTU', { mtu: 1300 }, false],
  ['further name servers', { nameservers: ['192.0.2.1', '192.0.2.2'] }, false],
  ['DHCP', { type: 'dhcp', address: undefined, gateway: undefined }, false],
])('a request for a NIC with %s', async (_name, more, isSame) => {
  const addressing = { type: 'static', address: '192.0.2.20/24', gateway: '192.0.2.1', ...more }
  expect(isConfiguredSo(await captured('networkd'), nic('eth0', addressing))).toBe(isSame)
})
