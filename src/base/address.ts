import { SocketAddress, BlockList, isIPv4 } from 'node:net'

/**
 * Normalizes an IPv6 address to the spelling of inet_ntop(3); undefined for other text and for an address with a zone.
 * It calls the C library because the regular expression of net.isIPv6 takes 4 ms to compile at startup.
 */
function spellIPv6(text: string): string | undefined {
  if (!text.includes(':') || text.includes('%')) return undefined
  try {
    return new SocketAddress({ address: text, family: 'ipv6' }).address
  } catch {
    return undefined
  }
}

/** True for an IPv6 address without a zone. A zone is only meaningful on one host. */
export const isIPv6 = (text: string): boolean => spellIPv6(text) !== undefined

/** True for an IPv4 or IPv6 address without a zone. */
export const isAddress = (text: string): boolean => isIPv4(text) || isIPv6(text)

/**
 * Normalizes an address so that equal addresses have equal text. A dual-stack socket reports IPv4 peers as v4-mapped
 * addresses (RFC 4291, 2.5.5.2), which become IPv4. The zone of a link-local address (RFC 4007, 11) is removed. Text
 * that is not an address is returned unchanged.
 */
export function canonicalAddress(address: string): string {
  const plain = address.replace(/%.*$/s, '')
  if (isIPv4(plain)) return plain
  return spellIPv6(plain)?.replace(/^::ffff:(?=\d+\.)/, '') ?? address
}

/** The IPv6 address given as 32 hex digits, the form of the kernel's tables; empty for other text. */
export const addressOfHex = (digits: string): string => spellIPv6(digits.replace(/.{4}(?=.)/g, '$&:')) ?? ''

/**
 * The address of a client that has none: a request over the daemon's own Unix socket. No network client can have it.
 */
export const localAddress = 'local'

/** The /64 of an IPv6 address as `2001:db8:1:2::/64`; undefined for everything else. */
export function slash64Of(address: string): string | undefined {
  const plain = canonicalAddress(address)
  if (!isIPv6(plain)) return undefined
  const [before = [], after = []] = plain.split('::').map((half) => half.split(':').filter(Boolean))
  const zeros = Array<string>(8 - before.length - after.length).fill('0')
  const network = [...before, ...zeros, ...after].slice(0, 4)
  return `${canonicalAddress(`${network.join(':')}::`)}/64`
}

/**
 * Groups addresses where they only have to be distinguished: an IPv4 address stays as it is, an IPv6 address becomes
 * its /64. For limits per client see `clientOf`.
 */
export const addressGroup = (address: string): string => slash64Of(address) ?? canonicalAddress(address)

/** True for 127.0.0.0/8 and ::1, mapped or not, and for the local socket. */
export function isLoopback(address: string): boolean {
  if (address === localAddress) return true
  const plain = canonicalAddress(address)
  return isIPv4(plain) ? plain.startsWith('127.') : plain === '::1'
}

/** True for 169.254.0.0/16 (RFC 3927) and fe80::/10 (RFC 4291): valid on one link only. */
export function isLinkLocal(address: string): boolean {
  const plain = canonicalAddress(address)
  return isIPv4(plain) ? plain.startsWith('169.254.') : isIPv6(plain) && /^fe[89ab][0-9a-f]:/.test(plain)
}

/** Address and port in one text, as in a URL: `127.0.0.1:5080`, `[::1]:5080`. */
export const addressWithPort = (address: string, port: number): string =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`

/**
 * The addresses of the host under which a listener can be reached.
 * @param bound the address it listens on; `::` means every address, `0.0.0.0` every IPv4 address
 */
export function reachableBy(bound: string, addresses: readonly string[]): readonly string[] {
  if (bound === '::') return addresses
  return bound === '0.0.0.0' ? addresses.filter((each) => isIPv4(each)) : [bound]
}

/** Addresses that begin alike. */
export interface Network {
  /** In canonical form. */
  readonly address: string
  readonly prefixLength: number
}

/** How an operator writes a network. */
export const networkForm = 'an address, or a network as 192.0.2.0/24 or 2001:db8::/32'

/**
 * Parses an address or a network in CIDR form.
 * @returns undefined for other text, for a network of all addresses, and for an IPv4 network in the form of IPv6, whose prefix is ambiguous
 */
export function parseNetwork(text: string): Network | undefined {
  const [, written = '', , length] = /^([^/]+)(\/(\d{1,3}))?$/.exec(text) ?? []
  if (!isAddress(written)) return undefined
  const address = canonicalAddress(written)
  const longest = isIPv4(address) ? 32 : 128
  if (length === undefined) return { address, prefixLength: longest }
  const prefixLength = Number(length)
  const isMapped = longest === 32 && written.includes(':')
  return isMapped || prefixLength < 1 || prefixLength > longest ? undefined : { address, prefixLength }
}

/**
 * Whether an address is in one of some networks, each written as `parseNetwork` accepts it.
 * @returns a function of an address in canonical form; text that is not an address is in none
 */
export function createNetworks(texts: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const text of texts) {
    const network = parseNetwork(text)
    if (network === undefined) throw new Error(`${text} is no network`)
    list.addSubnet(network.address, network.prefixLength, familyOf(network.address))
  }
  return (address) => texts.length > 0 && isAddress(address) && list.check(address, familyOf(address))
}

/** The family of a canonical address. */
export const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv4(address) ? 'ipv4' : 'ipv6')
