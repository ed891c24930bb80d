import { describe, expect, it } from 'vitest'
import {
  addressGroup,
  addressOfHex,
  isLinkLocal,
  isLoopback,
  reachableBy,
  canonicalAddress,
} from '../../../src/base/address.ts'

describe('canonicalAddress', () => {
  it.each([
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['::FFFF:10.0.0.1', '10.0.0.1'],
    ['::ffff:a00:1', '10.0.0.1'],
    ['0:0:0:0:0:ffff:192.168.255.254', '192.168.255.254'],
    ['fe80::1%eth0', 'fe80::1'],
    ['FE80::1%3', 'fe80::1'],
    ['2001:DB8::1', '2001:db8::1'],
    ['::1', '::1'],
    ['::', '::'],
    ['::ffff:0:10.0.0.1', '::ffff:0:a00:1'],
    ['64:ff9b::10.0.0.1', '64:ff9b::a00:1'],
    ['0:0:0:0:0:0:0:1', '::1'],
    ['no address', 'no address'],
    ['', ''],
  ])('the canonical form of %s is %s', (address, plain) => {
    expect(canonicalAddress(address)).toBe(plain)
  })
})

describe('addressGroup', () => {
  it.each([
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002:ffff:ffff:ffff:ffff', '2001:db8:1:2::/64'],
    ['2001:db8::9', '2001:db8::/64'],
    ['2001:0:0:5::9', '2001:0:0:5::/64'],
    ['2001::5:0:0:0:9', '2001:0:0:5::/64'],
    ['fe80::1%eth0', 'fe80::/64'],
    ['::1', '::/64'],
    ['64:ff9b::10.0.0.1', '64:ff9b::/64'],
    ['', ''],
  ])('%s is in the network %s', (address, group) => {
    expect(addressGroup(address)).toBe(group)
  })
})

describe('isLoopback', () => {
  it.each(['127.0.0.1', '127.8.9.10', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1'])(
    'isLoopback is true for %s',
    (address) => {
      expect(isLoopback(address)).toBe(true)
    },
  )
  it.each(['10.0.0.1', '::', '::2', '1::1', 'localhost', '127.evil.example', ''])(
    'isLoopback is false for %s',
    (address) => {
      expect(isLoopback(address)).toBe(false)
    },
  )
})

describe('isLinkLocal', () => {
  it.each(['169.254.1.2', 'fe80::1%eth0', 'febf::1', '::ffff:169.254.1.2'])('%s is link-local', (address) => {
    expect(isLinkLocal(address)).toBe(true)
  })
  it.each(['169.25.4.1', 'fec0::1', 'fe8::1', 'fd00::1', '::1', '10.0.0.1'])(
    '%s is not link-local',
    (address) => {
      expect(isLinkLocal(address)).toBe(false)
    },
  )
})

describe('reachableBy', () => {
  const all = ['192.0.2.7', '2001:db8::7']
  it.each([
    ['::', all],
    ['0.0.0.0', ['192.0.2.7']],
    ['198.51.100.1', ['198.51.100.1']],
  ])('reachableBy lists the addresses of a host that reach the bound address %s', (bound, expected) => {
    expect(reachableBy(bound, all)).toEqual(expected)
  })
})

it.each([
  ['fd000000000000000000000000000002', 'fd00::2'],
  ['20010db8000000010001000100010001', '2001:db8:0:1:1:1:1:1'],
  ['20010db8000000000001000000000001', '2001:db8::1:0:0:1'],
])('addressOfHex formats %s as %s', (digits, short) => {
  expect(addressOfHex(digits)).toBe(short)
})
