import { describe, expect, it } from 'vitest'
import { createNetworks, parseNetwork } from '../../../src/base/address.ts'

describe('a network', () => {
  it.each([
    ['192.0.2.7', { address: '192.0.2.7', prefixLength: 32 }],
    ['192.0.2.0/24', { address: '192.0.2.0', prefixLength: 24 }],
    ['2001:DB8::/32', { address: '2001:db8::', prefixLength: 32 }],
    ['::1', { address: '::1', prefixLength: 128 }],
    ['::ffff:192.0.2.7', { address: '192.0.2.7', prefixLength: 32 }],
  ])('%s is parsed', (text, network) => {
    expect(parseNetwork(text)).toEqual(network)
  })

  it.each([
    ...[
      '',
      'proxy.example',
      '192.0.2',
      '192.0.2.0/33',
      '192.0.2.0/',
      '192.0.2.0/-1',
      '192.0.2.0/8/8',
      ' 192.0.2.7',
    ],
    ...['2001:db8::/129', 'fe80::1%eth0', '[::1]', '192.0.2.7:80', '192.0.2.0/255.255.255.0'],
    // Everyone would be a proxy.
    ...['0.0.0.0/0', '::/0'],
    // 24 of 32 bits, or of 128?
    '::ffff:192.0.2.0/24',
  ])('%j is none', (text) => {
    expect(parseNetwork(text)).toBeUndefined()
  })

  it('has the addresses that begin as it does', () => {
    const has = createNetworks(['192.0.2.7', '10.1.0.0/16', '2001:db8:1::/48'])
    const inside = ['192.0.2.7', '10.1.255.255', '2001:db8:1:ffff::9']
    const outside = ['192.0.2.8', '10.2.0.0', '2001:db8:2::', '::1', 'local', '', 'x', '10.1']
    expect(inside.filter(has)).toEqual(inside)
    expect(outside.filter(has)).toEqual([])
    expect(createNetworks([])('192.0.2.7')).toBe(false)
    expect(() => createNetworks(['x'])).toThrow('no network')
  })
})
