import { isIPv4, SocketAddress } from 'node:net'

// A dual-stack socket shows IPv4 peers as v4-mapped (RFC 4291, 2.5.5.2), link-local ones with a zone (RFC 4007, 11).
const mappedGroups = '0,0,0,0,0,65535'

/**
 * The address as the rest of the daemon knows it: IPv4 for v4-mapped IPv6, no zone, lower case.
 * Text that is no address comes back as it is.
 */
export function unmapAddress(address: string): string {
  const plain = address.replace(/%.*$/s, '').toLowerCase()
  const groups = parseIPv6(plain)
  if (groups?.slice(0, 6).join() !== mappedGroups) return groups || isIPv4(plain) ? plain : address
  return groups
    .slice(6)
    .flatMap((group) => [group >> 8, group & 0xff])
    .join('.')
}

/**
 * What stands for an address where there is none: a request over the daemon's own Unix socket. No client of the network
 * can have it.
 */
export const localAddress = 'local'

/**
 * The one spelling of an address by which two can be told apart: as `unmapAddress`, IPv6 as inet_ntop(3) writes it.
 * Text that is no address comes back as it is.
 */
export function canonicalAddress(address: string): string {
  const plain = unmapAddress(address)
  return parseIPv6(plain) ? new SocketAddress({ address: plain, family: 'ipv6' }).address : plain
}

/** The /64 of an IPv6 address as `2001:db8:1:2::/64` (RFC 5952); undefined for everything else. */
export function slash64Of(address: string): string | undefined {
  const groups = parseIPv6(unmapAddress(address))
  if (!groups) return undefined
  // The four zero groups at the end are always the longest run, so the compression stands there.
  const network = groups.slice(0, 4)
  while (network.at(-1) === 0) network.pop()
  return `${network.map((group) => group.toString(16)).join(':')}::/64`
}

/**
 * What stands for an address where addresses are only told apart: an IPv4 address itself, an IPv6 address its /64. Who
 * counts as one client is another question, see `clientOf`.
 */
export const addressGroup = (address: string): string => slash64Of(address) ?? unmapAddress(address)

/** True for an IPv4 or IPv6 address without a zone. */
export function isAddress(text: string): boolean {
  return isIPv4(text) || parseIPv6(text) !== undefined
}

/** True for 127.0.0.0/8 and ::1, mapped or not, and for the local socket. */
export function isLoopback(address: string): boolean {
  if (address === localAddress) return true
  const plain = unmapAddress(address)
  return isIPv4(plain) ? plain.startsWith('127.') : parseIPv6(plain)?.join() === '0,0,0,0,0,0,0,1'
}

/** True for 169.254.0.0/16 (RFC 3927) and fe80::/10 (RFC 4291): valid on one link only. */
export function isLinkLocal(address: string): boolean {
  const plain = unmapAddress(address)
  if (isIPv4(plain)) return plain.startsWith('169.254.')
  return ((parseIPv6(plain)?.[0] ?? 0) & 0xffc0) === 0xfe80
}

/** The eight 16-bit groups, or undefined when the text is no IPv6 address. */
function parseIPv6(text: string): readonly number[] | undefined {
  if (!text.includes(':') || text.includes('%') || !isIPv6(text)) return undefined
  const [head = '', tail] = text.split('::')
  const before = parseGroups(head)
  if (tail === undefined) return before
  const after = parseGroups(tail)
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
}

/** As net.isIPv6, whose expression takes 8 ms to compile at the start; this one asks the C library. */
function isIPv6(text: string): boolean {
  try {
    new SocketAddress({ address: text, family: 'ipv6' })
    return true
  } catch {
    return false
  }
}

function parseGroups(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((part) => {
    if (!part.includes('.')) return [parseInt(part, 16)]
    const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number)
    return [a * 256 + b, c * 256 + d]
  })
}

/**
 * Under which of the host's addresses whoever listens at one is reached.
 * @param bound `::` is every address, `0.0.0.0` every IPv4 address
 */
export function reachableBy(bound: string, addresses: readonly string[]): readonly string[] {
  if (bound === '::') return addresses
  return bound === '0.0.0.0' ? addresses.filter((each) => isIPv4(each)) : [bound]
}
