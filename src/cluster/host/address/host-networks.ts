import { addressOfHex } from '../../../base/address.ts'
import { kernelTableBytes, type HostFiles } from '../../../host/files.ts'
import { createOwnAddresses } from '../../../host/network/own-addresses.ts'
import { dotted, isUsable } from '../../../host/network/routing-table.ts'
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
