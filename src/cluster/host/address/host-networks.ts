import { isIPv4 } from 'node:net'
import { addressOfHex, canonicalAddress, isAddress, isLoopback } from '../../../base/address.ts'
import { kernelTableBytes, type HostFiles } from '../../../host/files.ts'
import { createOwnAddresses } from '../../../host/network/own-addresses.ts'
import { dotted, isUsable } from '../../../host/network/routing-table.ts'
import type { WantedNode } from '../../wanted.ts'
import type { Subnet } from '../subnet.ts'

/** A route of this host, but no default route. */
export interface HostRoute {
  readonly subnet: Subnet
  readonly networkInterface: string
  /** Its addresses are reached without a gateway. */
  readonly isConnected: boolean
}

export interface HostNetworks {
  /** All addresses of this host. */
  readonly addresses: ReadonlySet<string>
  readonly routes: readonly HostRoute[]
}

/** Reads addresses and routes from /proc/net. */
export async function readHostNetworks(files: HostFiles): Promise<HostNetworks> {
  const own = createOwnAddresses(files)
  const [ipv4 = '', ipv6 = ''] = await Promise.all([
    files.text('/proc/net/route', kernelTableBytes),
    files.text('/proc/net/ipv6_route', kernelTableBytes),
    own.refresh(),
  ])
  return { addresses: own.current().addresses, routes: [...parseIpv4Routes(ipv4), ...parseIpv6Routes(ipv6)] }
}

/**
 * Says which address of a node this host has lost, as by another lease; the control plane cannot listen then. The virtual address has a unit
 * that adds it again. Pure.
 * @returns with the next command; undefined where it has all
 */
export function missingAddress(
  { address, endpoint, virtualAddress }: Pick<WantedNode, 'address' | 'endpoint' | 'virtualAddress'>,
  { addresses, routes }: HostNetworks,
): string | undefined {
  const needed = [address, ...(virtualAddress ? [] : [endpoint])].map(canonicalAddress)
  const lost = needed.find((each) => isAddress(each) && !addresses.has(each))
  // Every host has that of its loopback: without any, they could not be read.
  if (lost === undefined || addresses.size === 0) return undefined
  const others = [...addresses].filter(
    (each) => !isLoopback(each) && isIPv4(each) === isIPv4(lost) && !/^fe[89ab]/.test(each),
  )
  const at = routes.find(({ isConnected }) => isConnected)?.networkInterface ?? 'INTERFACE'
  const has = others.length === 0 ? 'it has none' : `it has ${others.slice(0, 3).join(', ')}`
  return `the address ${lost} of the node is not on this host any more (${has}); give it back: ip address add ${lost}/PREFIX dev ${at}, and in the configuration of its network for each boot; or delete the cluster and create it again with the new address: edgehostctl cluster delete`
}

// <linux/ipv6_route.h>
const rtfLocal = 0x80000000

/** Routes of /proc/net/route; see `host/network/routing-table.ts` for its numbers. */
export function parseIpv4Routes(text: string): readonly HostRoute[] {
  return text.split('\n').flatMap((line): HostRoute[] => {
    const [networkInterface, destination = '', gateway, flags = '', , , , mask = ''] = line
      .trim()
      .split(/\s+/)
    if (!networkInterface || !/^[0-9A-F]{8}$/.test(destination) || !leadsToOthers(flags)) return []
    const prefixLength = parseInt(mask, 16).toString(2).replaceAll('0', '').length
    if (prefixLength === 0) return []
    const subnet = { address: dotted(destination), prefixLength }
    return [{ subnet, networkInterface, isConnected: gateway === '00000000' }]
  })
}

/** Routes of /proc/net/ipv6_route (net/ipv6/route.c, rt6_info_route), without those for one link, for groups and for this host. */
export function parseIpv6Routes(text: string): readonly HostRoute[] {
  return text.split('\n').flatMap((line): HostRoute[] => {
    const [destination = '', length = '', , , gateway = '', , , , flags = '', networkInterface] = line
      .trim()
      .split(/\s+/)
    if (!networkInterface || networkInterface === 'lo' || !leadsToOthers(flags)) return []
    const prefixLength = parseInt(length, 16)
    if (prefixLength === 0 || /^f(e[89ab]|f)/.test(destination)) return []
    return [
      {
        subnet: { address: addressOfHex(destination), prefixLength },
        networkInterface,
        isConnected: /^0+$/.test(gateway),
      },
    ]
  })
}

function leadsToOthers(flags: string): boolean {
  const bits = parseInt(flags, 16)
  return isUsable(bits) && (bits & rtfLocal) === 0
}
