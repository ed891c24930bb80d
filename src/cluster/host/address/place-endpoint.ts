import { isIPv4 } from 'node:net'
import { canonicalAddress, isAddress, isLinkLocal, isLoopback } from '../../../base/address.ts'
import type { PreflightProblem } from '../../problem.ts'
import { isInSubnet, spellSubnet, type Subnet } from '../subnet.ts'
import { isInterfaceName, type HeldAddress } from './address-unit.ts'
import type { HostNetworks } from './host-networks.ts'

/** Where the address of the control plane is: on this host already, on an interface that a unit gives it to, or nowhere. */
export type EndpointPlace =
  | { readonly kind: 'own' }
  | { readonly kind: 'virtual'; readonly virtualAddress: HeldAddress }
  | { readonly kind: 'refused'; readonly problem: PreflightProblem }

export const endpointPath = 'spec.cloudConfig.spec.clusterConfig.controlPlaneEndpoint.host'

/** Judges the address that was posted for the control plane; an empty one stands for the address of this host. */
export function placeEndpoint(host: string, { addresses, routes }: HostNetworks): EndpointPlace {
  const text = host.trim()
  if (text === '') return { kind: 'own' }
  const refuse = (reason: string): EndpointPlace => ({
    kind: 'refused',
    problem: {
      code: 'EndpointInvalid',
      severity: 'error',
      message: `the address of the control plane ${JSON.stringify(text)} ${reason}`,
      path: endpointPath,
    },
  })
  if (!isAddress(text)) return refuse('is not an IP address; leave it empty for the address of this host')
  const address = canonicalAddress(text)
  if (isLoopback(address) || isLinkLocal(address) || isForGroups(address))
    return refuse('is not an address that other hosts can reach; take a free one of the network of this host')
  if (addresses.has(address)) return { kind: 'own' }
  // The narrowest network decides, as for the kernel.
  const connected = routes
    .filter((route) => route.isConnected && isInSubnet(address, route.subnet))
    .sort((a, b) => b.subnet.prefixLength - a.subnet.prefixLength)
  const [route] = connected
  if (!route) {
    const networks = [
      ...new Set(routes.filter((each) => each.isConnected).map((each) => spellSubnet(each.subnet))),
    ]
    return refuse(
      `is in no network of this host; take a free one of ${networks.join(', ') || 'its networks, of which none is up'}, or leave it empty`,
    )
  }
  if (isReserved(address, route.subnet))
    return refuse(`is reserved in the network ${spellSubnet(route.subnet)}; take another one`)
  if (!isInterfaceName(route.networkInterface))
    return refuse(
      `is in the network of the interface ${JSON.stringify(route.networkInterface)}, whose name a unit cannot hold`,
    )
  return { kind: 'virtual', virtualAddress: { address, networkInterface: route.networkInterface } }
}

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
