import { addressOfHex } from '../../base/address.ts'

/** A default route of the main table. */
export interface DefaultRoute {
  readonly nicName: string
  /** Absent on point-to-point links. */
  readonly gateway?: string
  /** The route with the lowest metric is used. */
  readonly metric: number
}

// <linux/route.h>
const rtfUp = 0x0001
const rtfReject = 0x0200

/**
 * Default routes of /proc/net/route, lowest metric first. An address there is a number in network byte order, printed as
 * one in host byte order; every architecture that the daemon supports is little-endian.
 */
export function parseIpv4DefaultRoutes(text: string): readonly DefaultRoute[] {
  const routes = text.split('\n').flatMap((line): DefaultRoute[] => {
    const [nicName, destination, gateway, flags, , , metric, mask] = line.trim().split(/\s+/)
    if (!nicName || !gateway || destination !== '00000000' || mask !== '00000000') return []
    if (!isUsable(parseInt(flags ?? '', 16))) return []
    const address = dotted(gateway)
    return [{ nicName, metric: Number(metric), ...(address === '0.0.0.0' ? {} : { gateway: address }) }]
  })
  return routes.sort((a, b) => a.metric - b.metric)
}

/** A network that an interface is connected to. */
export interface ConnectedRoute {
  readonly nicName: string
  /** Dotted. */
  readonly network: string
  /** Dotted. */
  readonly mask: string
}

/** Routes of /proc/net/route that need no gateway: the networks of the interfaces' own addresses. */
export function parseConnectedRoutes(text: string): readonly ConnectedRoute[] {
  return text.split('\n').flatMap((line): ConnectedRoute[] => {
    const [nicName, destination, gateway, flags, , , , mask] = line.trim().split(/\s+/)
    if (!nicName || !destination || !mask || gateway !== '00000000' || mask === '00000000') return []
    if (!isUsable(parseInt(flags ?? '', 16))) return []
    return [{ nicName, network: dotted(destination), mask: dotted(mask) }]
  })
}

/**
 * The IPv4 addresses of this host, including links without carrier: `host LOCAL` in /proc/net/fib_trie
 * (net/ipv4/fib_trie.c, fib_trie_seq_show). The file does not say which interface has which address.
 */
export function parseLocalAddresses(text: string): readonly string[] {
  const found = [...text.matchAll(/\|-- (\S+)\n\s+\/32 host LOCAL/g)].map(([, address]) => address ?? '')
  // An address may be listed twice, in the tables local and main.
  return [...new Set(found)]
}

// Destination ::/0. A Kubernetes node has thousands of other routes; this skips them at a fifth of the cost of parsing them.
const ipv6Default = /^0{32} 00 .*/gm

/** Default routes of /proc/net/ipv6_route (net/ipv6/route.c, rt6_info_route), lowest metric first. */
export function parseIpv6DefaultRoutes(text: string): readonly DefaultRoute[] {
  const unspecified = '0'.repeat(32)
  const routes = (text.match(ipv6Default) ?? []).flatMap((line): DefaultRoute[] => {
    const [, , , , gateway, metric, , , flags, nicName] = line.trim().split(/\s+/)
    if (!nicName || !gateway || !isUsable(parseInt(flags ?? '', 16))) return []
    const next = gateway === unspecified ? {} : { gateway: addressOfHex(gateway) }
    return [{ nicName, metric: parseInt(metric ?? '', 16), ...next }]
  })
  return routes.sort((a, b) => a.metric - b.metric)
}

/** The IPv4 address of eight hex digits of /proc/net/route. */
export function dotted(digits: string): string {
  return Buffer.from(digits, 'hex').reverse().join('.')
}

/** Whether a route with these flags is up and leads somewhere. */
export function isUsable(flags: number): boolean {
  return (flags & rtfUp) !== 0 && (flags & rtfReject) === 0
}
