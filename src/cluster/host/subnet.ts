import { BlockList, isIPv4 } from 'node:net'
import { canonicalAddress, familyOf, isAddress, isLinkLocal, isLoopback } from '../../base/address.ts'

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

/** Judgement of an address of the control plane for a host. Reasons complete a sentence that begins with the address. */
type JudgedEndpoint<Network> =
  | { readonly kind: 'own' }
  | { readonly kind: 'within'; readonly address: string; readonly network: Network }
  /** On no host. */
  | { readonly kind: 'unusable'; readonly reason: string }
  /** On a host with these networks. */
  | { readonly kind: 'elsewhere'; readonly reason: string }

/** The host that an address is judged for. */
interface EndpointHost<Network extends { readonly subnet: Subnet }> {
  /** In messages, for example `this host`. */
  readonly called: string
  /** Canonical. */
  readonly addresses: ReadonlySet<string>
  /** Networks that it reaches without a gateway. */
  readonly networks: readonly Network[]
}

/** Judges a given address of the control plane; an empty one stands for the address of the host. Pure. */
export function judgeEndpoint<Network extends { readonly subnet: Subnet }>(
  text: string,
  { called, addresses, networks }: EndpointHost<Network>,
): JudgedEndpoint<Network> {
  if (text === '') return { kind: 'own' }
  if (!isAddress(text))
    return {
      kind: 'unusable',
      reason: `is not an IP address; leave it empty for the address of ${called}`,
    }
  const address = canonicalAddress(text)
  if (isOfNoHost(address))
    return {
      kind: 'unusable',
      reason: `is not an address that other hosts can reach; take a free one of the network of ${called}`,
    }
  if (addresses.has(address)) return { kind: 'own' }
  // The narrowest network decides, as for the kernel.
  const [network] = networks
    .filter(({ subnet }) => isInSubnet(address, subnet))
    .sort((a, b) => b.subnet.prefixLength - a.subnet.prefixLength)
  if (!network) {
    const known = [...new Set(networks.map(({ subnet }) => spellSubnet(subnet)))]
    return {
      kind: 'elsewhere',
      reason: `is in no network of ${called}; take a free one of ${known.join(', ') || 'its networks, of which none is up'}, or leave it empty`,
    }
  }
  if (isReserved(address, network.subnet))
    return {
      kind: 'elsewhere',
      reason: `is reserved in the network ${spellSubnet(network.subnet)}; take another one`,
    }
  return { kind: 'within', address, network }
}

/** The sentence of a reason. */
export const saidOfEndpoint = (text: string, reason: string): string =>
  `the address of the control plane ${JSON.stringify(text)} ${reason}`

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
