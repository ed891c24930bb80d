import { expect, it } from 'vitest'
import { parseHops, parseMtu, parsePing } from '../../../src/diagnosis/probe-output.ts'

// Output of iputils 20221126 and traceroute 2.1.2 on Debian 12.

const answered = `PING 10.77.0.1 (10.77.0.1) 56(84) bytes of data.
64 bytes from 10.77.0.1: icmp_seq=1 ttl=64 time=0.053 ms
64 bytes from 10.77.0.1: icmp_seq=2 ttl=64 time=0.041 ms

--- 10.77.0.1 ping statistics ---
2 packets transmitted, 2 received, 0% packet loss, time 501ms
rtt min/avg/max/mdev = 0.041/0.047/0.053/0.006 ms
`
const unreachable = `PING 10.77.0.9 (10.77.0.9) 56(84) bytes of data.
From 10.77.0.2 icmp_seq=1 Destination Host Unreachable
From 10.77.0.2 icmp_seq=2 Destination Host Unreachable

--- 10.77.0.9 ping statistics ---
2 packets transmitted, 0 received, +2 errors, 100% packet loss, time 1018ms
`

it('a ping that is answered has its numbers and times', () => {
  expect(parsePing(answered)).toEqual({
    isReachable: true,
    transmitted: 2,
    received: 2,
    roundTrip: { minMs: 0.041, averageMs: 0.047, maxMs: 0.053 },
    errors: [],
  })
})

it('what routers and the host say of a ping without an answer is an error each, once', () => {
  expect(parsePing(unreachable)).toEqual({
    isReachable: false,
    transmitted: 2,
    received: 0,
    errors: ['10.77.0.2: Destination Host Unreachable'],
  })
  expect(parsePing('ping: connect: Network is unreachable\n').errors).toEqual([
    'connect: Network is unreachable',
  ])
})

it.each([
  ['ping: local error: message too long, mtu=1400\n', 1400],
  ['From 10.77.0.1 icmp_seq=1 Frag needed and DF set (mtu = 1380)\n', 1380],
  ['From fd00::1 icmp_seq=1 Packet too big: mtu=1280\n', 1280],
  [answered, undefined],
])('the MTU of %j is %s', (text, mtu) => {
  expect(parseMtu(text)).toBe(mtu)
})

it('hops have the addresses that answered, their times and why it ended', () => {
  const text = `traceroute to 192.0.2.9 (192.0.2.9), 30 hops max, 60 byte packets
 1  10.77.0.1  0.401 ms  0.392 ms
 2  * *
 3  10.78.0.1  3.5 ms 10.78.0.2  3.9 ms
10  fd00::5  0.612 ms !H  0.601 ms !H
`
  expect(parseHops(text)).toEqual([
    { number: 1, addresses: ['10.77.0.1'], timesMs: [0.401, 0.392] },
    { number: 2, addresses: [], timesMs: [] },
    { number: 3, addresses: ['10.78.0.1', '10.78.0.2'], timesMs: [3.5, 3.9] },
    { number: 10, addresses: ['fd00::5'], timesMs: [0.612, 0.601], mark: '!H' },
  ])
})
