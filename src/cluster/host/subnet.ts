import { BlockList, isIPv4 } from 'node:net'
import { canonicalAddress, isAddress } from '../../base/address.ts'

/** A network in the notation of CIDR, RFC 4632 and RFC 4291. */
export interface Subnet {
  /** Any address of it, as it was given. */
  readonly address: string
  readonly prefixLength: number
}

/** Parses `10.244.0.0/16` or `fd00::/64`; undefined for all other text. */
export function parseSubnet(text: string): Subnet | undefined {
  const [, address = '', length = ''] = /^([^/\s]+)\/(\d{1,3})$/.exec(text.trim()) ?? []
  if (!isAddress(address) || Number(length) > (isIPv4(address) ? 32 : 128)) return undefined
  return { address: canonicalAddress(address), prefixLength: Number(length) }
}

/** The length of the prefix of a mask as hosts report it: `255.255.255.0`, or the length itself. Empty for no mask. */
export function prefixLengthOf(mask: string): string {
  if (!isIPv4(mask)) return mask
  const bits = bytesOf(mask).map((byte) => byte.toString(2).padStart(8, '0'))
  return String(bits.join('').replaceAll('0', '').length)
}

/** An IPv4 network with its first address; one of IPv6 stays as it is. */
export function networkOf({ address, prefixLength }: Subnet): Subnet {
  if (!isIPv4(address)) return { address, prefixLength }
  const bytes = bytesOf(address).map((byte, at) => {
    const own = Math.min(8, Math.max(0, prefixLength - 8 * at))
    return byte - (byte % 2 ** (8 - own))
  })
  return { address: bytes.join('.'), prefixLength }
}

const bytesOf = (address: string): readonly number[] => address.split('.').map(Number)

/** The network that consists of one address. */
export const subnetOfOne = (address: string): Subnet => ({
  address: canonicalAddress(address),
  prefixLength: isIPv4(canonicalAddress(address)) ? 32 : 128,
})

/** Whether an address is in a network; addresses of the other family never are. */
export function isInSubnet(address: string, subnet: Subnet): boolean {
  if (isIPv4(address) !== isIPv4(subnet.address) || !isAddress(address)) return false
  const list = new BlockList()
  list.addSubnet(subnet.address, subnet.prefixLength, familyOf(subnet.address))
  return list.check(address, familyOf(address))
}

/** Whether a network is a part of another, or equal to it. */
export const isWithin = (inner: Subnet, outer: Subnet): boolean =>
  inner.prefixLength >= outer.prefixLength && isInSubnet(inner.address, outer)

/** Whether two networks have addresses in common. */
export const overlap = (a: Subnet, b: Subnet): boolean => isWithin(a, b) || isWithin(b, a)

export const spellSubnet = ({ address, prefixLength }: Subnet): string => `${address}/${prefixLength}`

/** The family of a canonical address. */
export const familyOf = (address: string) => (isIPv4(address) ? 'ipv4' : 'ipv6')
