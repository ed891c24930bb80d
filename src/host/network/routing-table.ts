import { addressOfHex } from '../../base/address.ts'

/** A default route of the main table. */
export interface DefaultRoute {
  readonly nicName: string
  /** Absent on point-to-point links. */
  readonly gateway?: string
  /** Lower is stronger. */
  readonly metric: number
}

// <linux/route.h>
const rtfUp = 0x0001
const rtfReject = 0x0200

/**
 * Default routes of /proc/net/route, strongest first. Addresses there are the bytes of a network-order
 * number printed as a host-order one; every architecture we run on is little-endian.
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
 * The IPv4 addresses that this host holds, on links without carrier too: `host LOCAL` in /proc/net/fib_trie
 * (net/ipv4/fib_trie.c, fib_trie_seq_show). Which interface has which is not said there.
 */
export function parseLocalAddresses(text: string): readonly string[] {
  const found = [...text.matchAll(/\|-- (\S+)\n\s+\/32 host LOCAL/g)].map(([, address]) => address ?? '')
  // The table may be listed twice, as local and as main.
  return [...new Set(found)]
}

// Destination ::/0; a Kubernetes node has thousands of others, and telling them apart like this costs a fifth.
const ipv6Default = /^0{32} 00 .*/gm

/** Default routes of /proc/net/ipv6_route (net/ipv6/route.c, rt6_info_route), strongest first. */
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

function dotted(digits: string): string {
  return Buffer.from(digits, 'hex').reverse().join('.')
}

function isUsable(flags: number): boolean {
  return (flags & rtfUp) !== 0 && (flags & rtfReject) === 0
}
