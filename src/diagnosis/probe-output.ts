// Output of ping (iputils) and of traceroute (traceroute.sourceforge.net), in English and with numbers alone. Pure.

import type { Static } from 'typebox'
import type { Hop, PingResult } from './schemas.ts'

type Pinged = Omit<Static<typeof PingResult>, 'target' | 'address' | 'next'>

/** Parses the output of ping. */
export function parsePing(text: string): Pinged {
  const [, transmitted = '0', received = '0'] = /^(\d+) packets transmitted, (\d+) received/m.exec(text) ?? []
  const [, min, average, max] = /^rtt min\/avg\/max\/mdev = ([\d.]+)\/([\d.]+)\/([\d.]+)\//m.exec(text) ?? []
  // From 192.0.2.1 icmp_seq=1 Destination Host Unreachable
  const errors = [...text.matchAll(/^From (\S+?):? icmp_seq=\d+ (.+)$/gm)].map(
    ([, from = '', what = '']) => `${from}: ${what}`,
  )
  const refused = [...text.matchAll(/^ping: (.+)$/gm)].map(([, what = '']) => what)
  return {
    isReachable: Number(received) > 0,
    transmitted: Number(transmitted),
    received: Number(received),
    ...(min === undefined
      ? {}
      : { roundTrip: { minMs: Number(min), averageMs: Number(average), maxMs: Number(max) } }),
    errors: [...new Set([...errors, ...refused])].slice(0, 10),
  }
}

/**
 * The MTU that a router, or this host, says a packet is too large for; undefined where none does. This host: `ping: local error: message too long,
 * mtu=1400`. A router: `From 192.0.2.1 icmp_seq=1 Frag needed and DF set (mtu = 1400)`; of IPv6 `Packet too big: mtu=1400`.
 */
export function parseMtu(text: string): number | undefined {
  const [, mtu] = /\bmtu ?[=:] ?(\d{2,5})/i.exec(text) ?? []
  return mtu === undefined ? undefined : Number(mtu)
}

/** Parses the output of traceroute, a hop each line: ` 2  192.0.2.1  0.6 ms  0.5 ms !H`, or ` 3  * *`. */
export function parseHops(text: string): Static<typeof Hop>[] {
  return [...text.matchAll(/^ ?(\d{1,3}) {2}(.+)$/gm)].map(([, number = '', rest = '']) => {
    const [, mark] = / (![A-Z0-9]*)/.exec(rest) ?? []
    return {
      number: Number(number),
      addresses: [
        ...new Set(
          rest.split(/\s+/).filter((word) => /^[\da-f:.]+(%\S+)?$/i.test(word) && /[.:].*[.:]/.test(word)),
        ),
      ],
      timesMs: [...rest.matchAll(/([\d.]+) ms/g)].map(([, time]) => Number(time)),
      ...(mark === undefined ? {} : { mark }),
    }
  })
}
