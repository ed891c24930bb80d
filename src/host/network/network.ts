import { networkInterfaces } from 'node:os'
import { addressOfHex } from '../../base/address.ts'
import { isRecord, parseJson } from '../../base/json.ts'
import type { CommandRunner } from '../../system/runner.ts'
import { ask } from '../ask.ts'
import { kernelTableBytes, passRefused, type HostFiles } from '../files.ts'
import type { Nic as WireNic } from '../schemas.ts'
import { isEndOfAnother, readLinks, readMac, type Link } from './links.ts'
import {
  parseConnectedRoutes,
  parseIpv4DefaultRoutes,
  parseIpv6DefaultRoutes,
  parseLocalAddresses,
  type ConnectedRoute,
  type DefaultRoute,
} from './routing-table.ts'

/** A network interface of the reply, without its DNS servers. */
export interface Nic extends Readonly<Omit<WireNic, 'dns'>> {
  /** The kernel's index of the interface. */
  readonly index: number
}

export interface Network {
  readonly nics: readonly Nic[]
  /** Every address of those interfaces under which a client may reach the host. */
  readonly addresses: readonly string[]
}

/** An address with its mask (IPv4: dotted, IPv6: prefix length). */
interface Address {
  readonly ip: string
  readonly subnet: string
}

/** IPv4 addresses by interface, primary first, as `os.networkInterfaces()` gives them. */
export type Ipv4Addresses = () => ReadonlyMap<string, readonly Address[]>

/**
 * IPv4 addresses of this machine, by getifaddrs(3) in this process and in the kernel's order. Node leaves out interfaces
 * that are not up and running; /proc has no list by interface.
 */
export const readIpv4Addresses: Ipv4Addresses = () => {
  const found = new Map<string, Address[]>()
  for (const [label, addresses] of Object.entries(networkInterfaces())) {
    // An address can have a label such as `eth0:1`; the name of an interface never contains a colon.
    const name = label.split(':')[0] ?? label
    const mine = (addresses ?? []).filter(({ family }) => family === 'IPv4')
    found.set(name, [...(found.get(name) ?? []), ...mine.map((a) => ({ ip: a.address, subnet: a.netmask }))])
  }
  return found
}

/** Reads interfaces from /sys/class/net, addresses and routes from /proc/net; what these do not have is asked of ip(8). */
export async function readNetwork(files: HostFiles, ipv4: Ipv4Addresses, askIp: AskIp): Promise<Network> {
  const routes = (await files.text('/proc/net/route', kernelTableBytes)) ?? ''
  const mainRoutes = parseIpv4DefaultRoutes(routes)
  const ipv4Routes = mainRoutes.length > 0 ? mainRoutes : await askOtherTables(askIp, routes)
  const ipv6Routes = parseIpv6DefaultRoutes(
    (await files.text('/proc/net/ipv6_route', kernelTableBytes)) ?? '',
  )
  const ipv4Addresses = new Map(ipv4())
  const ipv6Addresses = parseIpv6Addresses((await files.text('/proc/net/if_inet6', kernelTableBytes)) ?? '')
  const addressesOf = (name: string) => ({
    ipv4: ipv4Addresses.get(name) ?? [],
    ipv6: ipv6Addresses.get(name) ?? [],
  })
  const connected = parseConnectedRoutes(routes).filter(({ nicName }) => !ipv4Addresses.has(nicName))
  if (connected.length > 0) {
    const local = parseLocalAddresses((await files.text('/proc/net/fib_trie', kernelTableBytes)) ?? '')
    for (const each of quietAddresses(connected, local, ipv4Addresses)) ipv4Addresses.set(...each)
  }
  const identifying = await createChoice(files, askIp, ipv4Addresses)
  const routed = new Set([...ipv4Routes, ...ipv6Routes].map(({ nicName }) => nicName))
  const links = await readLinks(files, new Set([...routed, ...ipv4Addresses.keys(), ...ipv6Addresses.keys()]))
  const hasHardware = links.some(({ kind }) => kind === 'hardware')
  const isShown = async (link: Link): Promise<boolean> => {
    if (routed.has(link.name)) return true
    // A container has no hardware of its own: its NIC is the end of a veth pair, under any name.
    if (link.isOfPods) return !hasHardware && (await isEndOfAnother(files, link))
    return link.kind !== 'virtual' || Object.values(addressesOf(link.name)).flat().length > 0
  }
  const shown: Link[] = []
  for (const link of links) if (await isShown(link)) shown.push(link)
  const chosen = (ipv4Routes[0] ?? ipv6Routes[0])?.nicName

  const toNic = async (link: Link): Promise<Nic> => {
    const { ipv4, ipv6 } = addressesOf(link.name)
    const address = identifying(ipv4) ?? identifying(ipv6)
    // The gateway is of the same family as the address, where there is a choice.
    const tables = address !== undefined && !ipv4.includes(address) ? [ipv6Routes] : [ipv4Routes, ipv6Routes]
    const gateway = gatewayOf(link.name, tables)
    const macAddr = await readMac(files, link)
    return {
      ...(gateway ? { gateway } : {}),
      index: link.index,
      ...address,
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

/** The unit that holds the virtual address of a cluster on this host; the room `cluster` writes it. */
export const addressUnit = 'edgehostd-vip.service'

/**
 * Which address of an interface is that of the host: the first one that is not held for a cluster; one with a network before one
 * without (/32, /128), as keepalived adds them; a preferred one before a deprecated one.
 * @returns undefined for an interface that has none
 */
async function createChoice(
  files: HostFiles,
  askIp: AskIp,
  ipv4: ReadonlyMap<string, readonly Address[]>,
): Promise<(addresses: readonly Address[]) => Address | undefined> {
  const unit = await passRefused(files).files.text(`/etc/systemd/system/${addressUnit}`)
  const held = / address replace (\S+)\/\d+ dev /.exec(unit ?? '')?.[1]
  const hasNetwork = ({ subnet }: Address) => subnet !== '255.255.255.255' && subnet !== '128'
  // Neither /proc nor Node tells a deprecated IPv4 address; the order of IPv6 addresses has it already.
  const several = [...ipv4].filter(([, addresses]) => addresses.filter(hasNetwork).length > 1)
  const passed = several.length > 0 ? await askDeprecated(askIp, JSON.stringify(several)) : new Set<string>()
  return (addresses) => {
    const own = addresses.filter(({ ip }) => ip !== held)
    return own.find((each) => hasNetwork(each) && !passed.has(each.ip)) ?? own.find(hasNetwork) ?? own[0]
  }
}

/** IPv4 addresses whose preferred lifetime is over; none where ip(8) is missing. */
async function askDeprecated(askIp: AskIp, about: string): Promise<ReadonlySet<string>> {
  const links = await askIp(['address', 'show', 'deprecated'], about)
  const infos = links.flatMap(({ addr_info: list }) => (Array.isArray(list) ? (list as unknown[]) : []))
  return new Set(infos.filter(isRecord).flatMap(({ local }) => (typeof local === 'string' ? [local] : [])))
}

/** Default routes of other tables than the main one, which ip-rule(8) chooses and /proc/net/route does not show; lowest metric first. */
async function askOtherTables(askIp: AskIp, about: string): Promise<readonly DefaultRoute[]> {
  const routes = await askIp(['route', 'show', 'table', 'all', 'default'], about)
  return routes
    .flatMap(({ dst, metric, type = 'unicast', nexthops, ...only }): DefaultRoute[] => {
      if (dst !== 'default' || type !== 'unicast') return []
      // A route with several next hops has its interfaces and gateways in them.
      const hops = Array.isArray(nexthops) ? (nexthops as unknown[]).filter(isRecord) : [only]
      return hops.flatMap(({ dev, gateway }): DefaultRoute[] => {
        if (typeof dev !== 'string') return []
        const route: DefaultRoute = { nicName: dev, metric: Number(metric ?? 0) }
        return [typeof gateway === 'string' ? { ...route, gateway } : route]
      })
    })
    .sort((a, b) => a.metric - b.metric)
}

type IpObjects = readonly Readonly<Record<string, unknown>>[]

/**
 * Asks ip(8) about IPv4, with its words; none where it is missing or fails.
 * @param about what of /proc and of the addresses the question is about: it is asked again when that has changed, or after ten minutes, since
 *   the network is read at each change of a pod; after a failure in ten seconds
 */
export type AskIp = (words: readonly string[], about: string) => Promise<IpObjects>

const askAgainMs = 600_000
/** Nothing is known then, as where ip was too slow under the load of a boot. Not at once: one that always fails would be run at each read. */
const failedAgainMs = 10_000

/** @param now monotonic milliseconds */
export function createAskIp(runner: CommandRunner, now: () => number): AskIp {
  const answers = new Map<string, { about: string; until: number; found: Promise<IpObjects> }>()
  return (words, about) => {
    const line = words.join(' ')
    const last = answers.get(line)
    if (last?.about === about && now() < last.until) return last.found
    const asked = ask(runner, 'ip', ['-json', '-4', ...words], 3_000)
    const found = asked.then((answer) => {
      if ('stdout' in answer) return parseIp(answer.stdout)
      entry.until = now() + failedAgainMs
      return []
    })
    const entry = { about, until: now() + askAgainMs, found }
    answers.set(line, entry)
    return found
  }
}

/** It prints nothing where there is nothing to show. */
function parseIp(text: string): IpObjects {
  const list = parseJson(text)
  return Array.isArray(list) ? list.filter(isRecord) : []
}

/**
 * Addresses of links without carrier, which Node's networkInterfaces() leaves out: each local address that no other
 * interface has is assigned to the interface whose connected network contains it.
 */
function quietAddresses(
  connected: readonly ConnectedRoute[],
  local: readonly string[],
  known: ReadonlyMap<string, readonly Address[]>,
): readonly (readonly [string, readonly Address[]])[] {
  const taken = new Set([...known.values()].flat().map(({ ip }) => ip))
  const free = local.filter((address) => !taken.has(address) && !address.startsWith('127.'))
  return [...Map.groupBy(connected, ({ nicName }) => nicName)].flatMap(([name, networks]) => {
    const addresses = networks.flatMap(({ network, mask }) =>
      free.filter((ip) => isWithin(ip, network, mask)).map((ip) => ({ ip, subnet: mask })),
    )
    return addresses.length > 0 ? [[name, addresses] as const] : []
  })
}

function isWithin(ip: string, network: string, mask: string): boolean {
  const [address, base, bits] = [ip, network, mask].map((text) => text.split('.').map(Number))
  return address?.every((byte, index) => (byte & (bits?.[index] ?? 0)) === base?.[index]) ?? false
}

function gatewayOf(name: string, tables: readonly (readonly DefaultRoute[])[]): string | undefined {
  return tables.flat().find((route) => route.nicName === name && route.gateway)?.gateway
}

// <linux/if_addr.h>; the file has the lower eight bits.
const temporary = 0x01
const dadFailed = 0x08
const deprecated = 0x20
// Scope 00. This skips the link-local addresses of hundreds of pods' interfaces at a quarter of the cost of parsing them.
const globalIpv6 = /^[0-9a-f]{32} \S+ \S+ 00 .*/gm

/**
 * Global IPv6 addresses of /proc/net/if_inet6 by interface (net/ipv6/addrconf.c, if6_seq_show). Temporary addresses
 * (RFC 8981) change daily and do not identify a host: they are left out.
 */
export function parseIpv6Addresses(text: string): ReadonlyMap<string, readonly Address[]> {
  const found = new Map<string, (Address & { readonly flags: number })[]>()
  for (const line of text.match(globalIpv6) ?? []) {
    const [digits, , length, , flagText, name] = line.trim().split(/\s+/)
    const flags = parseInt(flagText ?? '', 16)
    if (!name || !digits || !length || (flags & (temporary | dadFailed)) !== 0) continue
    const address = {
      ip: addressOfHex(digits),
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
