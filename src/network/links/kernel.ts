import { isRecord, parseJson, type JsonObject } from '../../base/json.ts'
import { isIPv4 } from 'node:net'
import { isOfIpv4 } from '../../base/subnet.ts'

/** What kind of link it is, as far as the network of a host is configured with it. */
export type LinkKind = 'nic' | 'wifi' | 'bond' | 'vlan' | 'bridge'

/** The kinds as messages name them. */
export const kindNames: Readonly<Record<LinkKind, string>> = {
  nic: 'NIC',
  wifi: 'Wi-Fi interface',
  bond: 'bond',
  vlan: 'VLAN',
  bridge: 'bridge',
}

/** An address that an interface has now. */
export interface RunningAddress {
  readonly address: string
  readonly prefixLength: number
  readonly scope: string
  /** It has a lifetime: a DHCP server or a router gave it. */
  readonly isDynamic: boolean
}

/** A route of an interface, of any table but `local`. */
export interface RunningRoute {
  /** In CIDR form; `default` for all addresses. */
  readonly destination: string
  readonly gateway?: string
  readonly metric: number
  /** As ip-route(8) names it: kernel, static, dhcp, boot, ra, or a number. */
  readonly protocol: string
  readonly table: string
  readonly family: 'ipv4' | 'ipv6'
}

/** An interface as the kernel has it. */
export interface KernelLink {
  readonly index: number
  readonly name: string
  /** `info_kind` of ip-link(8): bond, vlan, bridge, veth, dummy, …; absent for hardware. */
  readonly driver?: string
  readonly isEthernet: boolean
  readonly mac?: string
  /** Of the hardware, where a bond has given it another one. */
  readonly permanentMac?: string
  readonly mtu: number
  /** The largest that its driver takes; absent where it does not say. */
  readonly maxMtu?: number
  /** Whether it is set up; it need not have a carrier. */
  readonly isUp: boolean
  readonly hasCarrier: boolean
  /** The bond or bridge that it is a member of. */
  readonly master?: string
  readonly vlan?: { readonly id: number; readonly parent: string }
  readonly bond?: BondOptions
  readonly bridge?: { readonly isStpOn: boolean }
  readonly addresses: readonly RunningAddress[]
  readonly routes: readonly RunningRoute[]
}

/** Options of a bond, by the names of the kernel (Documentation/networking/bonding.rst). */
export interface BondOptions {
  readonly mode?: string
  /** Milliseconds; 0: carriers are not watched. */
  readonly miimon?: number
  readonly lacpRate?: string
  readonly hashPolicy?: string
}

// The lifetime that the kernel has for "forever", <linux/if_addr.h>.
const forever = 0xff_ff_ff_ff

/**
 * Parses `ip -json -details address show` and `ip -json -details route show table all`, without loopback.
 * @returns undefined where the first is not such a list; routes that cannot be read are missing
 */
export function parseKernelLinks(addresses: string, routes: string): readonly KernelLink[] | undefined {
  const links = parseJson(addresses)
  if (!Array.isArray(links)) return undefined
  const byLink = Map.groupBy(parseRoutes(routes), ({ link }) => link)
  return links
    .filter(isRecord)
    .filter(({ link_type: type }) => type !== 'loopback')
    .flatMap((link) => toLink(link, byLink.get(String(link.ifname))?.map(({ route }) => route) ?? []))
}

function toLink(link: JsonObject, routes: readonly RunningRoute[]): readonly KernelLink[] {
  const { ifname: name, ifindex: index, mtu, max_mtu: maxMtu } = link
  if (typeof name !== 'string' || typeof index !== 'number' || typeof mtu !== 'number') return []
  const flags = texts(link.flags)
  const info = isRecord(link.linkinfo) ? link.linkinfo : {}
  const data = isRecord(info.info_data) ? info.info_data : {}
  const ofMember = isRecord(info.info_slave_data) ? info.info_slave_data : {}
  const driver = text(info.info_kind)
  const permanentMac = text(link.permaddr) ?? text(ofMember.perm_hwaddr)
  const mac = text(link.address)
  const master = text(link.master)
  const parent = text(link.link)
  return [
    {
      index,
      name,
      isEthernet: link.link_type === 'ether',
      mtu,
      isUp: flags.includes('UP'),
      hasCarrier: flags.includes('LOWER_UP'),
      addresses: records(link.addr_info).flatMap(toAddress),
      routes,
      // 0 where it has no limit, <linux/netdevice.h>.
      ...(typeof maxMtu === 'number' && maxMtu > 0 ? { maxMtu } : {}),
      ...(driver === undefined ? {} : { driver }),
      ...(mac === undefined ? {} : { mac }),
      ...(permanentMac === undefined ? {} : { permanentMac }),
      ...(master === undefined ? {} : { master }),
      ...(driver === 'vlan' && parent !== undefined && typeof data.id === 'number'
        ? { vlan: { id: data.id, parent } }
        : {}),
      ...(driver === 'bond' ? { bond: bondOf(data) } : {}),
      ...(driver === 'bridge' ? { bridge: { isStpOn: Number(data.stp_state ?? 0) !== 0 } } : {}),
    },
  ]
}

function bondOf(data: JsonObject): BondOptions {
  const mode = text(data.mode)
  const lacpRate = text(data.ad_lacp_rate)
  const hashPolicy = text(data.xmit_hash_policy)
  return {
    ...(mode === undefined ? {} : { mode }),
    ...(typeof data.miimon === 'number' ? { miimon: data.miimon } : {}),
    ...(lacpRate === undefined ? {} : { lacpRate }),
    ...(hashPolicy === undefined ? {} : { hashPolicy }),
  }
}

function toAddress(info: JsonObject): readonly RunningAddress[] {
  const { local, prefixlen: prefixLength, scope } = info
  if (typeof local !== 'string' || typeof prefixLength !== 'number') return []
  const lifetime = info.valid_life_time
  return [
    {
      address: local,
      prefixLength,
      scope: text(scope) ?? 'global',
      isDynamic: typeof lifetime === 'number' && lifetime !== forever,
    },
  ]
}

interface RouteOfLink {
  readonly link: string
  readonly route: RunningRoute
}

/** Routes to other hosts: the table `local` and broadcasts come with the addresses. */
function parseRoutes(routes: string): readonly RouteOfLink[] {
  const list = parseJson(routes)
  if (!Array.isArray(list)) return []
  return list.filter(isRecord).flatMap((entry): RouteOfLink[] => {
    const { dst, type = 'unicast', table = 'main', nexthops, ...only } = entry
    if (typeof dst !== 'string' || type !== 'unicast' || table === 'local') return []
    // A route with several next hops has its interfaces and gateways in them.
    return (Array.isArray(nexthops) ? records(nexthops) : [only]).flatMap((hop) => {
      const { dev, gateway } = hop
      if (typeof dev !== 'string') return []
      // `via` is a gateway of the other family, ip-route(8).
      const via = text(gateway) ?? (isRecord(hop.via) ? text(hop.via.host) : undefined)
      return [
        {
          link: dev,
          route: {
            destination: dst,
            ...(via === undefined ? {} : { gateway: via }),
            metric: typeof only.metric === 'number' ? only.metric : 0,
            protocol: text(only.protocol) ?? 'unspec',
            table: text(table) ?? String(table),
            family: isRouteOfIpv4(dst, via, only.pref) ? 'ipv4' : 'ipv6',
          },
        },
      ]
    })
  })
}

/** A default route does not say its family; a route of IPv6 has a preference (RFC 4191). */
function isRouteOfIpv4(destination: string, gateway: string | undefined, preference: unknown): boolean {
  if (destination !== 'default') return isOfIpv4(destination)
  return preference === undefined && (gateway === undefined || isIPv4(gateway))
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const texts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : []
const records = (value: unknown): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter(isRecord) : []

/** Facts of an interface in sysfs, which ip-link(8) does not have. */
export interface SysfsFacts {
  /** Below /sys/devices/virtual: no hardware of its own. */
  readonly isVirtual: boolean
  readonly isWifi: boolean
  /** The interface is an end of another one, as in a veth pair. */
  readonly isEndOfAnother: boolean
  /** Its name is one that container engines and network plugins give. */
  readonly isOfPods: boolean
}

/**
 * The links that are shown: NICs, Wi-Fi, bonds, VLANs, and bridges that somebody configured, with their kinds. No interface of pods,
 * containers or virtual machines; on a machine without hardware of its own, which is a container, its ends of veth pairs are its NICs.
 * @param isConfigured whether a backend has a configuration for a link
 */
export function shownLinks(
  links: readonly KernelLink[],
  factsOf: (name: string) => SysfsFacts | undefined,
  isConfigured: (name: string) => boolean,
): readonly (KernelLink & { readonly kind: LinkKind })[] {
  const isHardware = ({ name, isEthernet }: KernelLink) => isEthernet && factsOf(name)?.isVirtual === false
  const hasHardware = links.some(isHardware)
  const nics = new Map<string, LinkKind>()
  for (const link of links) {
    const facts = factsOf(link.name)
    if (facts === undefined) continue
    if (facts.isWifi) nics.set(link.name, 'wifi')
    else if (isHardware(link)) nics.set(link.name, 'nic')
    else if (!hasHardware && link.driver === 'veth' && facts.isEndOfAnother && !facts.isOfPods)
      nics.set(link.name, 'nic')
  }
  const kindOf = (link: KernelLink): LinkKind | undefined => {
    const { driver, name } = link
    if (driver === 'bond' || driver === 'vlan') return driver
    if (driver !== 'bridge') return nics.get(name)
    const hasPort = links.some(({ master, ...port }) => master === name && isOutside(port))
    // A bridge of containers may be one of a plant network too: its port that leads out of this host decides.
    return isConfigured(name) || (hasPort && factsOf(name) !== undefined) ? 'bridge' : undefined
  }
  const isOutside = ({ name, driver }: Pick<KernelLink, 'name' | 'driver'>) =>
    nics.has(name) || driver === 'bond' || driver === 'vlan'
  return links.flatMap((link) => {
    const kind = kindOf(link)
    return kind === undefined ? [] : [{ ...link, kind }]
  })
}
