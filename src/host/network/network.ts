import { addressOfHex } from '../../base/address.ts'
import { basename } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { type HostFiles, kernelTableBytes, passRefused } from '../files.ts'
import { parseAssignments } from '../machine.ts'
import { networkInterfaces } from 'node:os'
import { isRecord, parseJson } from '../../base/json.ts'
import type { CommandRunner } from '../../system/runner.ts'
import { ask } from '../ask.ts'
import type { Nic as WireNic } from '../schemas.ts'
import { ownAddresses, type OwnAddresses } from '../../base/client.ts'

/** A default route of the main table. */
interface DefaultRoute {
  readonly nicName: string
  /** Absent on point-to-point links. */
  readonly gateway?: string
  /** The route with the lowest metric is used. */
  readonly metric: number
}

// <linux/route.h>
const rtfUp = 0x0001
const rtfReject = 0x0200

/**
 * Default routes of /proc/net/route, lowest metric first. An address there is a number in network byte order, printed as
 * one in host byte order; every architecture that the daemon supports is little-endian.
 */
export function parseIpv4DefaultRoutes(text: string): readonly DefaultRoute[] {
  const routes = text.split('\n').flatMap((line): DefaultRoute[] => {
    const [nicName, destination, gateway, flags, , , metric, mask] = line.trim().split(/\s+/)
    if (!nicName || !gateway || destination !== '00000000' || mask !== '00000000') return []
    if (!isUsable(parseInt(flags ?? '', 16))) return []
    const address = dotted(gateway)
    return [{ nicName, metric: Number(metric), ...(address === '0.0.0.0' ? {} : { gateway: address }) }]
  })
  return routes.sort((a, b) => a.metric - b.metric)
}

/** A network that an interface is connected to. */
interface ConnectedRoute {
  readonly nicName: string
  /** Dotted. */
  readonly network: string
  /** Dotted. */
  readonly mask: string
}

/** Routes of /proc/net/route that need no gateway: the networks of the interfaces' own addresses. */
function parseConnectedRoutes(text: string): readonly ConnectedRoute[] {
  return text.split('\n').flatMap((line): ConnectedRoute[] => {
    const [nicName, destination, gateway, flags, , , , mask] = line.trim().split(/\s+/)
    if (!nicName || !destination || !mask || gateway !== '00000000' || mask === '00000000') return []
    if (!isUsable(parseInt(flags ?? '', 16))) return []
    return [{ nicName, network: dotted(destination), mask: dotted(mask) }]
  })
}

/**
 * The IPv4 addresses of this host, including links without carrier: `host LOCAL` in /proc/net/fib_trie
 * (net/ipv4/fib_trie.c, fib_trie_seq_show). The file does not say which interface has which address.
 */
function parseLocalAddresses(text: string): readonly string[] {
  const found = [...text.matchAll(/\|-- (\S+)\n\s+\/32 host LOCAL/g)].map(([, address]) => address ?? '')
  // An address may be listed twice, in the tables local and main.
  return [...new Set(found)]
}

// Destination ::/0. A Kubernetes node has thousands of other routes; this skips them at a fifth of the cost of parsing them.
const ipv6Default = /^0{32} 00 .*/gm

/** Default routes of /proc/net/ipv6_route (net/ipv6/route.c, rt6_info_route), lowest metric first. */
export function parseIpv6DefaultRoutes(text: string): readonly DefaultRoute[] {
  const unspecified = '0'.repeat(32)
  const routes = (text.match(ipv6Default) ?? []).flatMap((line): DefaultRoute[] => {
    const [, , , , gateway, metric, , , flags, nicName] = line.trim().split(/\s+/)
    if (!nicName || !gateway || !isUsable(parseInt(flags ?? '', 16))) return []
    const next = gateway === unspecified ? {} : { gateway: addressOfHex(gateway) }
    return [{ nicName, metric: parseInt(metric ?? '', 16), ...next }]
  })
  return routes.sort((a, b) => a.metric - b.metric)
}

/** The IPv4 address of eight hex digits of /proc/net/route. */
export function dotted(digits: string): string {
  return Buffer.from(digits, 'hex').reverse().join('.')
}

/** Whether a route with these flags is up and leads somewhere. */
export function isUsable(flags: number): boolean {
  return (flags & rtfUp) !== 0 && (flags & rtfReject) === 0
}

/** A network interface as the kernel lists it. */
interface Link {
  readonly name: string
  /** Its folder under /sys/devices. */
  readonly path: string
  readonly index: number
  /** Composed: bond, bridge, VLAN. Virtual: veth, tap, tunnel, dummy and all others without hardware. */
  readonly kind: 'hardware' | 'composed' | 'virtual'
  /** Has a name that container engines and network plugins give, and no hardware below it. */
  readonly isOfPods: boolean
}

// Interfaces that container engines and network plugins create on the host, including bridges.
const namesOfPods =
  /^(docker\d|br-[0-9a-f]{12}$|cni|podman|nerdctl|cbr\d|kube-|flannel|cali|tunl|vxlan|wireguard\.cali|cilium|lxc|weave|antrea-|ovn-k8s|nodelocaldns|virbr|veth)/
/** Whether a name is one that container engines and network plugins give; a card may have it too. */
export const isOfPodsName = (name: string): boolean => namesOfPods.test(name)
const composedTypes = new Set(['bond', 'bridge', 'vlan'])
// <linux/if_arp.h>: a CAN bus is not a network with addresses.
const arphrdCan = '280'

/**
 * Reads /sys/class/net, without loopback.
 * @param wanted names of interfaces to list even where they belong to pods; other interfaces of pods are left out
 */
async function readLinks(files: HostFiles, wanted: ReadonlySet<string>): Promise<readonly Link[]> {
  const links: Link[] = []
  for (const [count, name] of (await files.names('/sys/class/net')).entries()) {
    // Kernel files are read synchronously: with hundreds of interfaces, other work needs its turn in between.
    if (count % 16 === 15) await turn()
    const link = name === 'lo' ? undefined : await readLink(files, name, wanted)
    if (link) links.push(link)
  }
  return links.sort((a, b) => a.index - b.index)
}

/** undefined for an entry that is no interface, such as the file bonding_masters, and for one of pods that is not in `wanted`. */
async function readLink(
  files: HostFiles,
  name: string,
  wanted: ReadonlySet<string>,
): Promise<Link | undefined> {
  const path = await files.link(`/sys/class/net/${name}`)
  if (path === undefined || basename(path) !== name) return undefined
  // The name alone does not decide: a card may be called docker7, and a bridge to the plant network br-0123456789ab.
  const isOfPods = isOfPodsName(name) && isVirtual(path) && !(await hasHardwarePort(files, path))
  // A Kubernetes node has hundreds of these, so no more of their files are read.
  if (isOfPods && !wanted.has(name)) return undefined
  const event = parseAssignments((await files.text(`${path}/uevent`)) ?? '')
  const kind = await kindOf(files, path, event.get('DEVTYPE'))
  return { name, path, index: Number(event.get('IFINDEX')), kind, isOfPods }
}

const isVirtual = (path: string): boolean => path.startsWith('/sys/devices/virtual/')

/** Whether a bridge has a port that leads out of this host: hardware, or a bond or VLAN, which are based on hardware. */
async function hasHardwarePort(files: HostFiles, path: string): Promise<boolean> {
  for (const port of await files.names(`${path}/brif`)) {
    const ofPort = await files.link(`/sys/class/net/${port}`)
    if (ofPort === undefined) continue
    if (!isVirtual(ofPort)) return true
    const type = parseAssignments((await files.text(`${ofPort}/uevent`)) ?? '').get('DEVTYPE')
    if (type === 'bond' || type === 'vlan') return true
  }
  return false
}

/** Whether an interface is linked to another, as an end of a veth pair or a macvlan is: iflink in sysfs-class-net (ABI). */
async function isEndOfAnother(files: HostFiles, link: Link): Promise<boolean> {
  const behind = Number(await files.text(`${link.path}/iflink`))
  return behind > 0 && behind !== link.index
}

async function kindOf(files: HostFiles, path: string, type: string | undefined): Promise<Link['kind']> {
  if (type !== undefined && composedTypes.has(type)) return 'composed'
  if (type === 'wlan') return 'hardware'
  if (isVirtual(path)) return 'virtual'
  return (await files.text(`${path}/type`))?.trim() === arphrdCan ? 'virtual' : 'hardware'
}

/** The MAC address; undefined for interfaces that have none, such as tunnels. */
async function readMac(files: HostFiles, link: Link): Promise<string | undefined> {
  const mac = (await files.text(`${link.path}/address`))?.trim()
  return mac && !/^[0:]*$/.test(mac) ? mac : undefined
}

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
  const ipv4Addresses = new Map(ipv4())
  const ipv4Routes =
    mainRoutes.length > 0
      ? await withNextHops(askIp, mainRoutes, ipv4Addresses)
      : await askDefaultRoutes(askIp, ['table', 'all'], routes)
  const ipv6Routes = parseIpv6DefaultRoutes(
    (await files.text('/proc/net/ipv6_route', kernelTableBytes)) ?? '',
  )
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
 * Choice of the host's address on an interface: the first one that is not held for a cluster; one with a network before one
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

/**
 * The default routes of the main table with every next hop: /proc/net/route has only the first one of a route. Asked where another interface
 * has an address and no default route.
 */
async function withNextHops(
  askIp: AskIp,
  routes: readonly DefaultRoute[],
  addresses: ReadonlyMap<string, readonly Address[]>,
): Promise<readonly DefaultRoute[]> {
  const isRouted = (name: string) => routes.some(({ nicName }) => nicName === name)
  const others = [...addresses.keys()].filter((name) => name !== 'lo' && !isRouted(name))
  if (others.length === 0) return routes
  const all = await askDefaultRoutes(askIp, [], JSON.stringify(routes))
  // It is asked for more, never for less: what the kernel shows stays.
  return all.length > routes.length ? all : routes
}

/**
 * Default routes as ip(8) shows them, lowest metric first; with all tables also those that ip-rule(8) chooses and /proc/net/route does not
 * show.
 */
async function askDefaultRoutes(
  askIp: AskIp,
  table: readonly string[],
  about: string,
): Promise<readonly DefaultRoute[]> {
  const routes = await askIp(['route', 'show', ...table, 'default'], about)
  return routes
    .flatMap(({ dst, metric, type = 'unicast', nexthops, ...only }): DefaultRoute[] => {
      if (dst !== 'default' || type !== 'unicast') return []
      // A route with several next hops has its interfaces and gateways in them.
      const hops = Array.isArray(nexthops) ? (nexthops as unknown[]).filter(isRecord) : [only]
      return hops.flatMap(({ dev, gateway, flags }): DefaultRoute[] => {
        // Of a link that is down.
        if (typeof dev !== 'string' || (Array.isArray(flags) && flags.includes('dead'))) return []
        const route: DefaultRoute = { nicName: dev, metric: Number(metric ?? 0) }
        return [typeof gateway === 'string' ? { ...route, gateway } : route]
      })
    })
    .sort((a, b) => a.metric - b.metric)
}

type IpObjects = readonly Readonly<Record<string, unknown>>[]

/**
 * Asks ip(8) about IPv4, with its words; none where it is missing or fails.
 * @param about the part of /proc and of the addresses that matters: ip is asked again when it has changed, or after ten minutes, since
 *   the network is read at each change of a pod; after a failure in ten seconds
 */
type AskIp = (words: readonly string[], about: string) => Promise<IpObjects>

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
function parseIpv6Addresses(text: string): ReadonlyMap<string, readonly Address[]> {
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

/** All addresses of this host, also of pods' interfaces and of links without carrier, link-local and temporary ones. */
interface OwnAddressReader {
  /** The addresses as last read. */
  current(): OwnAddresses
  /** Reads the addresses again. */
  refresh(): Promise<void>
}

/** Reads the addresses from /proc/net; none before the first `refresh`. */
export function createOwnAddresses(files: HostFiles): OwnAddressReader {
  let text = ''
  let current = ownAddresses([])
  return {
    current: () => current,
    async refresh() {
      const [ipv4 = '', ipv6 = ''] = await Promise.all(
        ['/proc/net/fib_trie', '/proc/net/if_inet6'].map((path) => files.text(path)),
      )
      const [local, digits] = [parseLocalAddresses(ipv4), parseAddresses(ipv6)]
      const next = [...local, ...digits].join()
      if (next === text) return
      text = next
      current = ownAddresses([...local, ...digits.map(addressOfHex)])
    },
  }
}

/** Digits of all addresses in /proc/net/if_inet6, of any scope and state (net/ipv6/addrconf.c, if6_seq_show). */
const parseAddresses = (text: string): readonly string[] => text.match(/^[0-9a-f]{32}(?= )/gm) ?? []
