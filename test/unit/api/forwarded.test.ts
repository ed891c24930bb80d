import { describe, expect, it } from 'vitest'
import { forwardedClient } from '../../../src/api/connection/peer.ts'
import { createNetworks } from '../../../src/base/address.ts'
import { cpuNow } from '../../support/cpu-time.ts'

const isTrusted = createNetworks(['10.0.0.0/8', '2001:db8:ff::/48'])
const proxy = '10.0.0.1'
const client = (field: string, from = proxy, trusted = isTrusted) => forwardedClient(field, from, trusted)

describe('the client behind a proxy', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7', 'one address'],
    ['198.51.100.1, 192.0.2.7', '192.0.2.7', 'what the client wrote itself does not count'],
    ['10.0.0.9, 192.0.2.7', '192.0.2.7', 'nor where it names a proxy'],
    ['127.0.0.1, 192.0.2.7', '192.0.2.7', 'nor where it names this machine'],
    ['<script>, unknown, ,, 192.0.2.7', '192.0.2.7', 'and is not even read'],
    ['192.0.2.7, 10.0.0.2, 10.0.0.3', '192.0.2.7', 'proxies in a row'],
    ['192.0.2.7 ,\t10.0.0.2', '192.0.2.7', 'with spaces'],
    ['192.0.2.7,2001:db8:ff::5', '192.0.2.7', 'a proxy with IPv6'],
    ['2001:DB8:0::7', '2001:db8::7', 'IPv6, in one spelling'],
    ['[2001:db8::7]', '2001:db8::7', 'in brackets'],
    ['[2001:db8::7]:4711', '2001:db8::7', 'with a port'],
    ['192.0.2.7:4711', '192.0.2.7', 'IPv4 with a port'],
    ['::ffff:192.0.2.7', '192.0.2.7', 'mapped'],
    ['192.0.2.7, ::ffff:10.0.0.2', '192.0.2.7', 'a proxy that is mapped'],
    ['10.0.0.2, 10.0.0.3', '10.0.0.2', 'a request that began at a proxy'],
    ['192.0.2.7, 127.0.0.1', '10.0.0.1', 'a loopback address is of the machine that wrote it'],
    ['::1', '10.0.0.1', 'also of IPv6'],
    ['::ffff:127.0.0.1', '10.0.0.1', 'also mapped'],
  ])('of %j is %s: %s', (field, address) => {
    expect(client(field)).toBe(address)
  })

  it.each([
    ...[
      '',
      ' ',
      ',',
      '192.0.2.7,',
      '192.0.2.7, ',
      'unknown',
      '_hidden',
      '192.0.2.7, proxy.example',
      '192.0.2',
      '192.0.2.256',
    ],
    ...[
      '192.0.2.7:',
      '192.0.2.7:port',
      '192.0.2.7:123456',
      '[192.0.2.7]:80',
      '[2001:db8::7',
      '2001:db8::7]:80',
    ],
    ...[
      'fe80::1%eth0',
      '1.2.3.4\u0000',
      "192.0.2.7'",
      '0x7f000001',
      '192.0.2.07',
      'for=192.0.2.7',
      'unknown, 10.0.0.2',
    ],
    ...['1'.repeat(65), '2001:db8::7:4711:1:2:3:4:5:6', '192.0.2.7 198.51.100.1', '192.0.2.7;198.51.100.1'],
  ])('of %j is unknown', (field) => {
    expect(client(field)).toBeUndefined()
  })

  it('of a proxy on this machine may be on it too, where the loopback is trusted', () => {
    const trusted = createNetworks(['127.0.0.1'])
    expect(client('192.0.2.7', '127.0.0.1', trusted)).toBe('192.0.2.7')
    expect(client('192.0.2.7, 127.0.0.1', '127.0.0.1', trusted)).toBe('192.0.2.7')
    expect(client('127.0.0.1', '127.0.0.1', trusted)).toBe('127.0.0.1')
  })

  it('is found, or not, at once in a long field', () => {
    const begin = cpuNow()
    expect(client(','.repeat(10_000))).toBeUndefined()
    expect(client(`${','.repeat(10_000)}192.0.2.7`)).toBe('192.0.2.7')
    // More proxies in a row than any site has.
    expect(client(`192.0.2.7${',10.0.0.2'.repeat(1_000)}`)).toBeUndefined()
    expect(client(`192.0.2.7${',10.0.0.2'.repeat(15)}`)).toBe('192.0.2.7')
    expect(client('9'.repeat(100_000))).toBeUndefined()
    expect(cpuNow() - begin).toBeLessThan(500)
  })
})
