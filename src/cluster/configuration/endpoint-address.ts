import { isIPv4 } from 'node:net'
import { canonicalAddress, isAddress, isLinkLocal, isLoopback } from '../../base/address.ts'
import { isInSubnet, spellSubnet, type Subnet } from '../host/subnet.ts'

/** What an address of the control plane is for a host. Reasons complete a sentence that begins with the address. */
export type JudgedEndpoint<Network> =
  | { readonly kind: 'own' }
  | { readonly kind: 'within'; readonly address: string; readonly network: Network }
  /** On no host. */
  | { readonly kind: 'unusable'; readonly reason: string }
  /** On a host with these networks. */
  | { readonly kind: 'elsewhere'; readonly reason: string }

/** The host that an address is judged for. */
export interface EndpointHost<Network extends { readonly subnet: Subnet }> {
  /** In messages, for example `this host`. */
  readonly called: string
  /** Canonical. */
  readonly addresses: ReadonlySet<string>
  /** Whose addresses it reaches without a gateway. */
  readonly networks: readonly Network[]
}

/** Judges an address that was given for the control plane; an empty one stands for the address of the host. Pure. */
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
  if (isLoopback(address) || isLinkLocal(address) || isForGroups(address))
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

/** 224.0.0.0/4 and 240.0.0.0/4 (RFC 5771, RFC 1112), ff00::/8 (RFC 4291), and the unspecified addresses. */
const isForGroups = (address: string): boolean =>
  isIPv4(address)
    ? Number(address.split('.', 1)[0]) >= 224 || address.startsWith('0.')
    : address.startsWith('ff') || address === '::'

/** The first address of a network, and the last one of an IPv4 network (RFC 919, RFC 4291); a network of two has none (RFC 3021). */
function isReserved(address: string, { address: network, prefixLength }: Subnet): boolean {
  if (!isIPv4(address)) return prefixLength < 127 && address === network
  if (prefixLength > 30) return false
  const number = (text: string) => text.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0)
  const size = 2 ** (32 - prefixLength)
  const place = number(address) % size
  return place === 0 || place === size - 1
}
