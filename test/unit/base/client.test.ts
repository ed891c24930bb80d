import { describe, expect, it } from 'vitest'
import { clientOf, isThisHost, ownAddresses } from '../../../src/base/client.ts'

const own = ownAddresses([
  '127.0.0.1',
  '::1',
  '192.0.2.7',
  'fe80::7',
  '2001:db8:1:2::7',
  '2001:db8:1:2:aaaa:bbbb:cccc:dddd',
  // DHCPv6 gives a /128; its link is no less of a link.
  'fd00::128',
])
const host = { name: 'host', network: undefined }
const alone = (name: string) => ({ name, network: undefined })

describe('clientOf', () => {
  it.each([
    ['loopback', '127.0.0.1', host],
    ['any other address of 127.0.0.0/8', '127.200.3.4', host],
    ['loopback, mapped', '::ffff:127.0.0.1', host],
    ['loopback of IPv6', '::1', host],
    ['an IPv4 address of this host', '192.0.2.7', host],
    ['the same, mapped', '::ffff:192.0.2.7', host],
    ['an IPv6 address of this host', '2001:db8:1:2::7', host],
    ['the same, spelled at length', '2001:0DB8:0001:0002:0:0:0:7', host],
    ['a link-local address of this host', 'fe80::7%eth0', host],
    ['an IPv4 address', '192.0.2.8', alone('192.0.2.8')],
    ['an IPv4 address, mapped', '::ffff:192.0.2.8', alone('192.0.2.8')],
    ['a neighbour', '2001:db8:1:2::8', { name: '2001:db8:1:2::8', network: '2001:db8:1:2::/64' }],
    [
      'the same, spelled at length',
      '2001:DB8:1:2:0:0:0:8',
      { name: '2001:db8:1:2::8', network: '2001:db8:1:2::/64' },
    ],
    ['a neighbour of a single address', 'fd00::9', { name: 'fd00::9', network: 'fd00::/64' }],
    ['a link-local neighbour', 'fe80::8%eth0', { name: 'fe80::8', network: 'fe80::/10' }],
    ['one beyond fe80::/64', 'febf:1::8', { name: 'febf:1::8', network: 'fe80::/10' }],
    ['a /64 elsewhere', '2001:db8:1:3::8', alone('2001:db8:1:3::/64')],
    ['the same /64', '2001:db8:1:3:ffff::9', alone('2001:db8:1:3::/64')],
    ['the local socket', 'local', alone('local')],
    ['no address', '', alone('')],
  ])('the client of %s is found', (_what, address, client) => {
    expect(clientOf(address, own)).toEqual(client)
  })

  it('no /64 is on-link because of loopback or link-local addresses', () => {
    expect([...own.networks].sort()).toEqual(['2001:db8:1:2::/64', 'fd00::/64'])
  })
})

it.each([
  ['127.0.0.9', true],
  ['192.0.2.7', true],
  ['local', true],
  ['192.0.2.8', false],
  ['fe80::8', false],
  ['', false],
])('the client of %s is this host: %s', (address, expected) => {
  expect(isThisHost(clientOf(address, own))).toBe(expected)
})
