import { networkInterfaces } from 'node:os'
import type { HostFiles } from './files.ts'
import { readLinkDns } from './dns.ts'
import { readLinks, readMac, type Link } from './links.ts'
import {
  formatIpv6,
  parseIpv4DefaultRoutes,
  parseIpv6DefaultRoutes,
  type DefaultRoute,
} from './routing-table.ts'

/** A network interface as the wire shows it, but for DNS servers that hold for the whole host. */
export interface Nic {
  readonly nicName: string
  readonly ip?: string
  /** IPv4: dotted mask. IPv6: length of the prefix as text. */
  readonly subnet?: string
  readonly gateway?: string
  readonly macAddr?: string
  readonly isDefault: boolean
  /** Servers of this link alone; undefined when nobody keeps such. */
  readonly dns?: readonly string[]
}

export interface Network {
  readonly nics: readonly Nic[]
  /** Every address of those interfaces under which a client may reach the host. */
  readonly addresses: readonly string[]
}

/** An address with its mask (IPv4: dotted, IPv6: prefix length), the interface's primary one first. */
interface Address {
  readonly ip: string
  readonly subnet: string
}

/** IPv4 addresses by interface, primary first, as `os.networkInterfaces()` gives them. */
export type Ipv4Addresses = () => ReadonlyMap<string, readonly Address[]>

/**
 * IPv4 addresses of this machine: getifaddrs(3) in process, in the kernel's order. It knows interfaces that
 * are up and running only; /proc has no list by interface.
 */
export const readIpv4Addresses: Ipv4Addresses = () => {
  const found = new Map<string, Address[]>()
  for (const [label, addresses] of Object.entries(networkInterfaces())) {
    // An address can be labelled `eth0:1`; no interface has a colon in its name.
    const name = label.split(':')[0] ?? label
    const mine = (addresses ?? []).filter(({ family }) => family === 'IPv4')
    found.set(name, [...(found.get(name) ?? []), ...mine.map((a) => ({ ip: a.address, subnet: a.netmask }))])
  }
  return found
}

/** Reads interfaces from /sys/class/net, addresses, routes from /proc/net and DNS servers by link. */
export async function readNetwork(files: HostFiles, ipv4: Ipv4Addresses): Promise<Network> {
  const ipv4Routes = parseIpv4DefaultRoutes((await files.text('/proc/net/route')) ?? '')
  const ipv6Routes = parseIpv6DefaultRoutes((await files.text('/proc/net/ipv6_route')) ?? '')
  const ipv4Addresses = ipv4()
  const ipv6Addresses = parseIpv6Addresses((await files.text('/proc/net/if_inet6')) ?? '')
  const addressesOf = (name: string) => ({
    ipv4: ipv4Addresses.get(name) ?? [],
    ipv6: ipv6Addresses.get(name) ?? [],
  })
  const routed = new Set([...ipv4Routes, ...ipv6Routes].map(({ nicName }) => nicName))
  const links = await readLinks(files, routed)
  const hasHardware = links.some(({ kind }) => kind === 'hardware')
  // A container has no hardware of its own: there an interface with an address is what the host has.
  const isContainers = ({ name }: Link) => !hasHardware && Object.values(addressesOf(name)).flat().length > 0
  const shown = links.filter((link) => link.kind !== 'virtual' || routed.has(link.name) || isContainers(link))
  const linkDns = await readLinkDns(files)
  const chosen = (ipv4Routes[0] ?? ipv6Routes[0])?.nicName

  const toNic = async (link: Link): Promise<Nic> => {
    const { ipv4, ipv6 } = addressesOf(link.name)
    // An address and a gateway of one family, where there is a choice.
    const tables = ipv4.length === 0 && ipv6.length > 0 ? [ipv6Routes] : [ipv4Routes, ipv6Routes]
    const gateway = gatewayOf(link.name, tables)
    const macAddr = await readMac(files, link)
    const dns = linkDns.get(link.index)
    return {
      ...(dns ? { dns } : {}),
      ...(gateway ? { gateway } : {}),
      ...(ipv4[0] ?? ipv6[0]),
      isDefault: link.name === chosen,
      ...(macAddr ? { macAddr } : {}),
      nicName: link.name,
    }
  }
  return {
    nics: await Promise.all(shown.map(toNic)),
    addresses: shown.flatMap(({ name }) => Object.values(addressesOf(name)).flat()).map(({ ip }) => ip),
  }
}

function gatewayOf(name: string, tables: readonly (readonly DefaultRoute[])[]): string | undefined {
  return tables.flat().find((route) => route.nicName === name && route.gateway)?.gateway
}

// <linux/if_addr.h>; the file holds the lower eight bits.
const temporary = 0x01
const dadFailed = 0x08
const deprecated = 0x20

/**
 * Global IPv6 addresses of /proc/net/if_inet6 by interface (net/ipv6/addrconf.c, if6_seq_show). Temporary
 * ones (RFC 8981) change by the day and name no host: they are left out.
 */
export function parseIpv6Addresses(text: string): ReadonlyMap<string, readonly Address[]> {
  const found = new Map<string, (Address & { readonly flags: number })[]>()
  for (const line of text.split('\n')) {
    const [digits, , length, scope, flagText, name] = line.trim().split(/\s+/)
    const flags = parseInt(flagText ?? '', 16)
    if (!name || !digits || !length || scope !== '00' || (flags & (temporary | dadFailed)) !== 0) continue
    const address = {
      ip: formatIpv6(digits),
      subnet: String(parseInt(length, 16)),
      flags: flags & deprecated,
    }
    found.set(name, [...(found.get(name) ?? []), address])
  }
  return new Map(
    [...found].map(([name, addresses]) => [
      name,
      addresses
        .sort((a, b) => a.flags - b.flags || (a.ip < b.ip ? -1 : 1))
        .map(({ ip, subnet }) => ({ ip, subnet })),
    ]),
  )
}
