import { describe, expect, it } from 'vitest'
import { touchesWay, whyUnproven, type Way } from '../../../src/network/trial/way.ts'
import type { NetworkState } from '../../../src/network/change-set.ts'

const state = (link: string, gateway?: string): NetworkState => ({
  files: [],
  devices: [],
  up: [],
  expected: [{ link, addresses: ['192.0.2.9/24'], ...(gateway === undefined ? {} : { gateway }) }],
})
const change = (link: string, gateway?: string) => ({
  links: [link],
  before: state(link),
  after: state(link, gateway),
})
const links = [
  { link: 'eth1', addresses: ['192.0.2.5/24', 'fd00::5/64'] },
  { link: 'eth2', addresses: ['198.51.100.5/25'] },
]
const way = (hostAddress: string | undefined, clientAddress = '192.0.2.77') => ({
  isLocal: false,
  hostAddress,
  clientAddress,
})

describe('whether a change touches the way of its request', () => {
  it.each([
    ['the link of the address', change('eth1'), way('192.0.2.5'), true],
    ['the link of the address in IPv6', change('eth1'), way('fd00:0::5'), true],
    ['an address as a socket of IPv6 names it', change('eth1'), way('::ffff:192.0.2.5'), true],
    ['another link without a gateway', change('eth2'), way('192.0.2.5'), false],
    ['the gateway of another link, and a neighbour', change('eth2', '198.51.100.1'), way('192.0.2.5'), false],
    [
      'the gateway of another link, and a client behind it',
      change('eth2', '198.51.100.1'),
      way('192.0.2.5', '203.0.113.7'),
      true,
    ],
    [
      'a subnet that ends before the client',
      change('eth1', '192.0.2.1'),
      way('198.51.100.5', '198.51.100.200'),
      true,
    ],
    ['an address that no link has', change('eth2'), way('203.0.113.9'), true],
    ['a connection whose address is not known', change('eth2'), way(undefined), true],
    ['a loopback address', change('eth1'), way('127.0.0.1'), false],
    ['the socket of root', change('eth1'), { ...way(undefined), isLocal: true }, false],
  ])('%s', (_name, of, by, expected) => {
    expect(touchesWay(of, by, links)).toBe(expected)
  })
})

describe('whether a request shows that the host can be reached', () => {
  const by = (more: Partial<Way> = {}): Way => ({ ...way('192.0.2.9'), acceptedAt: 101, ...more })
  const own = ['192.0.2.9', 'fd00::5']
  const touching = { needsNewWay: true, appliedAt: 100 }

  it.each([
    ['a new connection to an address that it has', touching, by()],
    ['a new connection to an address of IPv6', touching, by({ hostAddress: 'FD00:0::5' })],
    [
      'a new connection to any address, where the way is not touched',
      { ...touching, needsNewWay: false },
      by({ hostAddress: '127.0.0.1' }),
    ],
    [
      'the socket of root',
      { needsNewWay: true, appliedAt: undefined },
      by({ isLocal: true, hostAddress: undefined }),
    ],
  ])('%s does', (_name, of, connection) => {
    expect(whyUnproven(of, connection, own)).toBeUndefined()
  })

  it.each([
    ['a connection of before', touching, by({ acceptedAt: 99 }), /connect again/],
    ['a connection of the moment of the apply', touching, by({ acceptedAt: 100 }), /connect again/],
    [
      'a connection of before, where the way is not touched',
      { ...touching, needsNewWay: false },
      by({ acceptedAt: 99 }),
      /connect again/,
    ],
    ['a connection whose time is not known', touching, by({ acceptedAt: undefined }), /connect again/],
    ['any connection while it is applied', { ...touching, appliedAt: undefined }, by(), /connect again/],
    ['a connection to an address that is gone', touching, by({ hostAddress: '192.0.2.5' }), /192\.0\.2\.5/],
    ['a connection from the host itself', touching, by({ hostAddress: '127.0.0.1' }), /127\.0\.0\.1/],
    ['a connection without an address', touching, by({ hostAddress: undefined }), /an unknown address/],
  ])('%s does not', (_name, of, connection, why) => {
    expect(whyUnproven(of, connection, own)).toMatch(why)
  })
})
