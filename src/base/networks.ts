import { BlockList, isIPv4 } from 'node:net'
import { canonicalAddress, isAddress } from './address.ts'

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

const familyOf = (address: string) => (isIPv4(address) ? 'ipv4' : 'ipv6')
