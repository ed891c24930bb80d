import { canonicalAddress, isAddress } from '../../base/address.ts'
import { isInSubnet, isOfNoHost, isReserved, spellSubnet, type Subnet } from '../../base/subnet.ts'

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
