// Files of systemd-networkd: systemd.network(5), systemd.netdev(5), systemd.syntax(7). A file that we write is the file in force with its drop-ins,
// changed in what a request names: sections and lines that no request names stay as they are, in their order. Pure.

import { isIPv4 } from 'node:net'
import { bareAddress, isOfIpv4 } from '../../base/subnet.ts'
import {
  firstIpv4,
  type ConfiguredRoute,
  type DeviceConfiguration,
  type LinkConfiguration,
} from '../links/configuration.ts'
import type { Addressing } from '../wanted.ts'

/** A section of a file; the same name may come again, and a section `[Route]` each time is another route. */
export interface Section {
  readonly name: string
  readonly lines: readonly Line[]
}

/** A line of a section; comments and empty lines have no key. */
export interface Line {
  readonly key?: string
  readonly value: string
}

export type Unit = readonly Section[]

/** Folders of networkd, those first that win for files of the same name; /lib is /usr/lib on a merged system. */
export const networkdFolders = [
  '/etc/systemd/network',
  '/run/systemd/network',
  '/usr/local/lib/systemd/network',
  '/usr/lib/systemd/network',
  '/lib/systemd/network',
] as const

/** Parses a file. Lines before the first section, which networkd ignores, are left out. */
export function parseUnit(text: string): Unit {
  const sections: { name: string; lines: Line[] }[] = []
  // A backslash at the end of a line continues it; comment lines between are skipped, systemd.syntax(7).
  const joined = text.replace(/\\\n(?:[ \t]*[#;][^\n]*\n)*/g, ' ')
  for (const raw of joined.split('\n')) {
    const line = raw.trim()
    const section = /^\[(.+)\]$/.exec(line)?.[1]
    const lines = sections.at(-1)?.lines
    if (section !== undefined) sections.push({ name: section, lines: [] })
    else if (/^[#;]/.test(line) || !line.includes('=')) {
      if (/^[#;]/.test(line)) lines?.push({ value: line })
    } else {
      const at = line.indexOf('=')
      lines?.push({ key: line.slice(0, at).trim(), value: line.slice(at + 1).trim() })
    }
  }
  return sections
}

/** The text of a file. */
export const formatUnit = (unit: Unit): string =>
  unit
    .map(({ name, lines }) =>
      [
        `[${name}]`,
        ...lines.map(({ key, value }) => (key === undefined ? value : `${key}=${value}`)),
        '',
      ].join('\n'),
    )
    .join('\n')

/** A file and its drop-ins as one: networkd reads them one after the other, in this order. */
export const withDropIns = (file: Unit, dropIns: readonly Unit[]): Unit => [
  ...file,
  ...dropIns.flatMap((dropIn) => dropIn.filter(({ name }) => name !== 'Match')),
]

/** All values of a key in the sections of a name; an empty value takes back those before it. */
export function valuesOf(unit: Unit, section: string | readonly string[], key: string): readonly string[] {
  const names = [section].flat()
  const values: string[] = []
  for (const { name, lines } of unit)
    if (names.includes(name))
      for (const line of lines)
        if (line.key === key) {
          if (line.value === '') values.length = 0
          else values.push(line.value)
        }
  return values
}

/** The value that counts of a key that has one. */
export const valueOf = (unit: Unit, section: string | readonly string[], key: string): string | undefined =>
  valuesOf(unit, section, key).at(-1)

const words = (values: readonly string[]) => values.flatMap((value) => value.split(/\s+/)).filter(Boolean)

/** Older name of the section, systemd.network(5) before version 246; netplan writes it. */
const dhcpSections = ['DHCP', 'DHCPv4', 'DHCPv6']

const isDefault = (destination: string | undefined) =>
  destination === undefined || destination === '' || /^(0\.0\.0\.0|::)(\/0)?$/.test(destination)

/** The routes of sections `[Route]`, and which of them are default routes; a blackhole and the like counts as a route. */
function routesOf(unit: Unit) {
  return unit
    .filter(({ name }) => name === 'Route')
    .map((section) => {
      const only = [section]
      const destination = valueOf(only, 'Route', 'Destination')
      const gateway = valueOf(only, 'Route', 'Gateway')
      const metric = valueOf(only, 'Route', 'Metric')
      const table = valueOf(only, 'Route', 'Table')
      const isMain = table === undefined || ['main', '254'].includes(table)
      return {
        section,
        destination,
        gateway,
        metric: metric === undefined ? undefined : Number(metric),
        isDefault: isMain && gateway !== undefined && isDefault(destination),
      }
    })
}

const isTrue = (value: string) => /^(yes|true|1|on|y|t)$/i.test(value)

/** Whether DHCP is on for a family, by `DHCP=`. */
export function dhcpOf(unit: Unit): { readonly ipv4: boolean; readonly ipv6: boolean } {
  const value = valueOf(unit, 'Network', 'DHCP') ?? 'no'
  // `both`, `v4` and `v6` are older spellings.
  const isBoth = isTrue(value) || value === 'both'
  return {
    ipv4: isBoth || value === 'ipv4' || value === 'v4',
    ipv6: isBoth || value === 'ipv6' || value === 'v6',
  }
}

/** Configuration in a file and its drop-ins. @param files paths of all of them */
export function networkConfiguration(unit: Unit, files: readonly string[]): LinkConfiguration {
  const addresses = [
    ...words(valuesOf(unit, 'Network', 'Address')),
    ...unit
      .filter(({ name }) => name === 'Address')
      .flatMap((section) => valueOf([section], 'Address', 'Address') ?? []),
  ]
  const routes = routesOf(unit)
  const gateways = [
    ...words(valuesOf(unit, 'Network', 'Gateway')),
    ...routes.filter((route) => route.isDefault).flatMap(({ gateway }) => gateway ?? []),
  ]
  const gateway = gateways.find((each) => isIPv4(each))
  const gateway6 = gateways.find((each) => each.includes(':'))
  const ofDhcp = valueOf(unit, dhcpSections, 'RouteMetric')
  const metric = routes.find((route) => route.isDefault && route.gateway === gateway)?.metric
  const mtu = bytes(valueOf(unit, 'Link', 'MTUBytes'))
  const master = valueOf(unit, 'Network', 'Bond') ?? valueOf(unit, 'Network', 'Bridge')
  const isDhcp = dhcpOf(unit).ipv4
  const shownMetric = metric ?? (isDhcp && ofDhcp !== undefined ? Number(ofDhcp) : undefined)
  const typed = firstIpv4(addresses) === undefined ? 'none' : 'static'
  return {
    files,
    type: isDhcp ? 'dhcp' : typed,
    addresses,
    ...(gateway === undefined ? {} : { gateway }),
    ...(gateway6 === undefined ? {} : { gateway6 }),
    ...(shownMetric === undefined ? {} : { metric: shownMetric }),
    ...(mtu === undefined ? {} : { mtu }),
    nameservers: words(valuesOf(unit, 'Network', 'DNS')),
    searchDomains: words(valuesOf(unit, 'Network', 'Domains')),
    routes: routes
      .filter((route) => !route.isDefault)
      .map(({ destination, gateway: via, metric: ofRoute }): ConfiguredRoute => ({
        destination: destination ?? 'default',
        ...(via === undefined ? {} : { gateway: via }),
        ...(ofRoute === undefined ? {} : { metric: ofRoute }),
      })),
    rules: unit.filter(({ name }) => name === 'RoutingPolicyRule').length,
    ...(master === undefined ? {} : { master }),
    vlans: words(valuesOf(unit, 'Network', 'VLAN')),
  }
}

/** A number of bytes with a suffix K, M or G, to the base 1024. */
function bytes(value: string | undefined): number | undefined {
  const [, digits, suffix = ''] = /^(\d+)([KMG]?)$/.exec(value ?? '') ?? []
  return digits === undefined ? undefined : Number(digits) * 1_024 ** ' KMG'.indexOf(suffix || ' ')
}

/** The device that a .netdev file makes; undefined for one that makes none of this name. */
export function deviceConfiguration(
  unit: Unit,
  file: string,
): (DeviceConfiguration & { name: string }) | undefined {
  const name = valueOf(unit, 'NetDev', 'Name')
  const kind = valueOf(unit, 'NetDev', 'Kind')
  if (name === undefined || kind === undefined) return undefined
  const mode = valueOf(unit, 'Bond', 'Mode')
  const miimon = seconds(valueOf(unit, 'Bond', 'MIIMonitorSec'))
  const lacpRate = valueOf(unit, 'Bond', 'LACPTransmitRate')
  const hashPolicy = valueOf(unit, 'Bond', 'TransmitHashPolicy')
  const stp = valueOf(unit, 'Bridge', 'STP')
  const id = valueOf(unit, 'VLAN', 'Id')
  return {
    name,
    file,
    ...(kind === 'bond'
      ? {
          bond: {
            ...(mode === undefined ? {} : { mode }),
            ...(miimon === undefined ? {} : { miimon }),
            ...(lacpRate === undefined ? {} : { lacpRate }),
            ...(hashPolicy === undefined ? {} : { hashPolicy }),
          },
        }
      : {}),
    ...(stp === undefined ? {} : { isStpOn: isTrue(stp) }),
    ...(id === undefined ? {} : { vlanId: Number(id) }),
  }
}

/** Milliseconds of a time span of seconds or milliseconds, systemd.time(7). */
function seconds(value: string | undefined): number | undefined {
  const [, number, unit = 's'] = /^(\d+(?:\.\d+)?)\s*(s|sec|ms)?$/.exec(value ?? '') ?? []
  return number === undefined ? undefined : Math.round(Number(number) * (unit === 'ms' ? 1 : 1_000))
}

/** Replaces all lines of a key in the sections of a name by these values, in the first such section, which is added where there is none. */
export function setValues(unit: Unit, section: string, key: string, values: readonly string[]): Unit {
  const lines = values.map((value): Line => ({ key, value }))
  const at = unit.findIndex(({ name }) => name === section)
  if (at < 0) return lines.length === 0 ? unit : [...unit, { name: section, lines }]
  return unit.map((each, index) => {
    if (each.name !== section) return each
    const others = each.lines.filter((line) => line.key !== key)
    if (index !== at) return { ...each, lines: others }
    const first = each.lines.findIndex((line) => line.key === key)
    const before = first < 0 ? others.length : first
    return { ...each, lines: [...others.slice(0, before), ...lines, ...others.slice(before)] }
  })
}

const setValue = (unit: Unit, section: string, key: string, value: string | undefined): Unit =>
  setValues(unit, section, key, value === undefined ? [] : [value])

/** A section with another value of a key. */
const setIn = (section: Section, key: string, value: string): Section =>
  setValues([section], section.name, key, [value])[0] ?? section

/** The file as it is carried over for one link: what it matched besides stays with the file it came from. */
export const forLink = (unit: Unit, name: string): Unit => [
  { name: 'Match', lines: [{ key: 'Name', value: name }] },
  ...unit.filter((section) => section.name !== 'Match'),
]

/** Changes IPv4, MTU and name servers of a file; all else stays. */
export function changeAddressing(unit: Unit, addressing: Addressing): Unit {
  const { mtu, nameservers } = addressing
  let changed = changeDhcp(unit, addressing.type === 'dhcp')
  changed = changeAddress(changed, addressing.type === 'static' ? addressing.address : undefined)
  changed = changeGateway(changed, addressing.type === 'static' ? addressing.gateway : undefined)
  if (mtu !== undefined) changed = setValue(changed, 'Link', 'MTUBytes', String(mtu))
  if (nameservers !== undefined) changed = setValues(changed, 'Network', 'DNS', nameservers)
  return inOrder(changed)
}

function changeDhcp(unit: Unit, isOn: boolean): Unit {
  const before = dhcpOf(unit)
  if (before.ipv4 === isOn) return unit
  const ofBoth = isOn ? 'yes' : 'ipv6'
  return setValue(unit, 'Network', 'DHCP', before.ipv6 ? ofBoth : isOn ? 'ipv4' : 'no')
}

/** Replaces the first address of IPv4, which is the one that the API shows; the others stay. */
function changeAddress(unit: Unit, address: string | undefined): Unit {
  const given = words(valuesOf(unit, 'Network', 'Address'))
  const own = firstIpv4(given)
  const isSame = (each: string) => address !== undefined && bareAddress(each) === bareAddress(address)
  if (own !== undefined || !unit.some(isAddressOfIpv4)) {
    const others = given.filter((each) => each !== own && !isSame(each))
    const next = address === undefined ? others : [address, ...others]
    if (next.join() === given.join()) return unit
    return setValues(unit, 'Network', 'Address', next)
  }
  const at = unit.findIndex(isAddressOfIpv4)
  // A section of its own may have options, as a label or a scope, which stay.
  return address === undefined
    ? unit.toSpliced(at, 1)
    : unit.map((section, index) => (index === at ? setIn(section, 'Address', address) : section))
}

const isAddressOfIpv4 = (section: Section) =>
  section.name === 'Address' && isOfIpv4(valueOf([section], 'Address', 'Address') ?? '')

/** Replaces the gateway of the default route of IPv4; its metric and other options stay. */
function changeGateway(unit: Unit, gateway: string | undefined): Unit {
  const given = words(valuesOf(unit, 'Network', 'Gateway'))
  const inSections = routesOf(unit).filter(
    (route) => route.isDefault && route.gateway !== undefined && isIPv4(route.gateway),
  )
  const [first, ...more] = inSections.map(({ section }) => section)
  const others = given.filter((each) => !isIPv4(each))
  const hasLine = others.length < given.length
  const withLine = (isWanted: boolean) =>
    hasLine || isWanted
      ? setValues(unit, 'Network', 'Gateway', [...(isWanted && gateway ? [gateway] : []), ...others])
      : unit
  if (gateway === undefined) return withLine(false).filter((section) => !isOneOf(section, inSections))
  if (first === undefined) return withLine(true)
  return withLine(false)
    .filter((section) => !more.includes(section))
    .map((section) => (section === first ? setIn(section, 'Gateway', gateway) : section))
}

const isOneOf = (section: Section, routes: readonly { readonly section: Section }[]) =>
  routes.some((route) => route.section === section)

// As systemd.network(5) has them; further ones stay behind.
const order = ['Match', 'Link', 'Network']

/** New sections stand where one looks for them. */
const inOrder = (unit: Unit): Unit => unit.toSorted((a, b) => place(a) - place(b))
const place = ({ name }: Section) => (order.includes(name) ? order.indexOf(name) : order.length)

/** The file of a member of a bond or bridge: settings of the link itself stay, addresses and routes belong to the master. */
export const memberUnit = (unit: Unit, name: string, kind: 'bond' | 'bridge', master: string): Unit => [
  { name: 'Match', lines: [{ key: 'Name', value: name }] },
  ...unit.filter((section) => ['Link', 'Bridge', 'BridgeVLAN', 'SR-IOV'].includes(section.name)),
  { name: 'Network', lines: [{ key: kind === 'bond' ? 'Bond' : 'Bridge', value: master }] },
]

/** A file for a link that has had none: only the named addresses. */
export const emptyUnit = (name: string): Unit => [
  { name: 'Match', lines: [{ key: 'Name', value: name }] },
  {
    name: 'Network',
    lines: [
      { key: 'LinkLocalAddressing', value: 'no' },
      { key: 'IPv6AcceptRA', value: 'no' },
    ],
  },
]

/** Adds or removes a VLAN of a link. */
export function changeVlan(unit: Unit, vlan: string, isThere: boolean): Unit {
  const given = words(valuesOf(unit, 'Network', 'VLAN'))
  const others = given.filter((each) => each !== vlan)
  return inOrder(setValues(unit, 'Network', 'VLAN', isThere ? [...others, vlan] : others))
}

/** A .netdev file. Absent options have the defaults of the kernel. */
export function deviceUnit(device: {
  readonly name: string
  readonly kind: 'bond' | 'vlan' | 'bridge'
  readonly mac?: string
  readonly options: Readonly<Record<string, string | undefined>>
}): Unit {
  const { name, kind, mac, options } = device
  const section = { bond: 'Bond', vlan: 'VLAN', bridge: 'Bridge' }[kind]
  const lines = Object.entries(options).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value }],
  )
  return [
    {
      name: 'NetDev',
      lines: [
        { key: 'Name', value: name },
        { key: 'Kind', value: kind },
        // Without it the master has an address of its own, and a DHCP server gives it another lease than its member had.
        ...(mac === undefined ? [] : [{ key: 'MACAddress', value: mac }]),
      ],
    },
    ...(lines.length === 0 ? [] : [{ name: section, lines }]),
  ]
}

/**
 * The IAID of a lease: a master that is to get the lease of its member asks with the same one. networkd keeps the client identifier of a
 * lease as `ff`, the IAID and a DUID (RFC 4361, 6.1).
 * @param lease of /run/systemd/netif/leases
 */
export function iaidOfLease(lease: string): number | undefined {
  const digits = /^CLIENTID=ff([0-9a-f]{8})/m.exec(lease)?.[1]
  return digits === undefined ? undefined : parseInt(digits, 16)
}

/** Has the DHCP client of a link ask with an IAID, unless the file says what it identifies itself by. */
export function withIaid(unit: Unit, iaid: number): Unit {
  const isGiven = ['ClientIdentifier', 'IAID'].some((key) => valueOf(unit, dhcpSections, key) !== undefined)
  return isGiven ? unit : setValue(unit, 'DHCPv4', 'IAID', String(iaid))
}
