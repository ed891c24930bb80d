import { BlockList, isIPv4 } from 'node:net'
import { canonicalAddress, familyOf, isAddress, isLinkLocal, isLoopback } from './address.ts'

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

/** Whether an address, in canonical form, is one by which no other host reaches a host: of loopback, of one link only, or for groups. */
export const isOfNoHost = (address: string): boolean =>
  isLoopback(address) || isLinkLocal(address) || isForGroups(address)

/** 224.0.0.0/4 and 240.0.0.0/4 (RFC 5771, RFC 1112), ff00::/8 (RFC 4291), and the unspecified addresses. */
const isForGroups = (address: string): boolean =>
  isIPv4(address)
    ? Number(address.split('.', 1)[0]) >= 224 || address.startsWith('0.')
    : address.startsWith('ff') || address === '::'

/** The first address of a network, and the last one of an IPv4 network (RFC 919, RFC 4291); a network of two has none (RFC 3021). */
export function isReserved(address: string, { address: network, prefixLength }: Subnet): boolean {
  if (!isIPv4(address)) return prefixLength < 127 && address === network
  if (prefixLength > 30) return false
  const number = (text: string) => text.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0)
  const size = 2 ** (32 - prefixLength)
  const place = number(address) % size
  return place === 0 || place === size - 1
}

/** The text of an address without the length of its prefix. */
export const bareAddress = (cidr: string): string => cidr.split('/')[0] ?? cidr

/** Whether an address, with or without the length of its prefix, is one of IPv4. */
export const isOfIpv4 = (cidr: string): boolean => isIPv4(bareAddress(cidr))

/** A mask as the API spells it: 24 is 255.255.255.0. */
export function dottedMask(prefixLength: number): string {
  return [0, 1, 2, 3]
    .map((byte) => 256 - 2 ** (8 - Math.min(8, Math.max(0, prefixLength - 8 * byte))))
    .join('.')
}

/** The length of the prefix of a dotted mask; undefined for text that is no mask, as 255.0.255.0. */
export function prefixLengthOfMask(mask: string): number | undefined {
  const length = Array.from({ length: 33 }, (_, index) => index).find((each) => dottedMask(each) === mask)
  return length === 0 ? undefined : length
}
