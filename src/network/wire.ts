// What the API says of a link. Pure.

import { isIPv4 } from 'node:net'
import { familyOf } from '../base/address.ts'
import { backendNames } from './links/owners.ts'
import { bareAddress, dottedMask } from '../base/subnet.ts'
import { firstIpv4 } from './links/configuration.ts'
import type { LinkKind, RunningAddress, RunningRoute } from './links/kernel.ts'
import type { Link } from './links/links.ts'
import type { Bond, Bridge, ManagementInterface, NicSummary, Vlan } from './schemas.ts'

/** What the API has to know beside the links. */
export interface Shown {
  /** Addresses of the cluster on this host, canonical. */
  readonly clusterAddresses: ReadonlySet<string>
}

/** Why the configuration of a link cannot be changed here; undefined where it can. Continues a sentence that begins with the link. */
export function notWritable(link: Link): string | undefined {
  const { backend, name } = link.owner
  if (backend !== undefined) return undefined
  if (name === 'nobody')
    return 'is configured by none of systemd-networkd, netplan, NetworkManager and ifupdown; configure it with one of them first'
  const known = Object.values(backendNames).filter((each) => name.split(' and ').includes(each))
  return known.length > 1
    ? `is configured by ${name} at the same time; remove it from the configuration of one of them first`
    : `is configured by ${name}; change it there`
}

/** The address of IPv4 that the API shows: the configured one where it runs, otherwise the first one of a network. */
export function shownAddress(link: Link): RunningAddress | undefined {
  const running = link.addresses.filter(({ address, scope }) => isIPv4(address) && scope === 'global')
  const configured = firstIpv4(link.owner.configured?.addresses ?? [])
  return (
    running.find(({ address }) => configured !== undefined && address === bareAddress(configured)) ??
    // An address held for a cluster has no network, and a leased one comes after given ones.
    running.find(({ prefixLength }) => prefixLength < 32) ??
    running[0]
  )
}

/** The default routes of IPv4 over a link; the first is used. */
export const defaultRoutesOf = ({ routes }: Link): readonly RunningRoute[] =>
  routes
    .filter(
      ({ destination, family, table }) => destination === 'default' && family === 'ipv4' && table === 'main',
    )
    .toSorted((a, b) => a.metric - b.metric)

function common(link: Link, shown: Shown) {
  const { owner, addresses, routes, mac } = link
  const { configured } = owner
  const own = shownAddress(link)
  const given = firstIpv4(configured?.addresses ?? [])
  const [ip, length] = own
    ? [own.address, own.prefixLength]
    : [given && bareAddress(given), Number(given?.split('/')[1] ?? 32)]
  const gateway = defaultRoutesOf(link)[0]?.gateway ?? configured?.gateway
  const reason = notWritable(link)
  return {
    name: link.name,
    configStatus: owner.status,
    status: statusOf(link),
    ...(ip === undefined ? {} : { ip, subnet: dottedMask(length) }),
    ...(gateway === undefined ? {} : { gateway }),
    nameservers: [...(link.nameservers.length > 0 ? link.nameservers : (configured?.nameservers ?? []))],
    mtu: link.mtu,
    isClusterNIC: addresses.some(({ address }) => shown.clusterAddresses.has(address)),
    ...(mac === undefined ? {} : { mac: link.permanentMac ?? mac }),
    hasCarrier: link.hasCarrier,
    addresses: addresses.map(({ address, prefixLength, scope, isDynamic }) => ({
      address,
      prefixLength,
      family: familyOf(address),
      scope,
      isDynamic,
    })),
    routes: routes.map((each) => ({ ...each })),
    searchDomains: [...link.searchDomains],
    owner: owner.name,
    isWritable: reason === undefined,
    ...(reason === undefined ? {} : { notWritableReason: `${link.name} ${reason}` }),
    ...(configured === undefined ? {} : { configured: configuredOf(configured) }),
  }
}

function configuredOf(configuration: NonNullable<Link['owner']['configured']>) {
  const { files, type, addresses, gateway, gateway6, metric, mtu } = configuration
  return {
    files: [...files],
    type,
    addresses: [...addresses],
    ...(gateway === undefined ? {} : { gateway }),
    ...(gateway6 === undefined ? {} : { gateway6 }),
    ...(metric === undefined ? {} : { metric }),
    ...(mtu === undefined ? {} : { mtu }),
    nameservers: [...configuration.nameservers],
    searchDomains: [...configuration.searchDomains],
    routes: configuration.routes.map((route) => ({ ...route })),
    rules: configuration.rules,
  }
}

const statusOf = ({ isUp, hasCarrier }: Link): 'up' | 'down' => (isUp && hasCarrier ? 'up' : 'down')

/** How a link gets its address of IPv4: as its files say, otherwise as its addresses tell. */
export function typeOf(link: Link): 'dhcp' | 'static' | 'none' {
  const { configured } = link.owner
  if (configured !== undefined) return configured.type
  const own = shownAddress(link)
  return own === undefined ? 'none' : own.isDynamic ? 'dhcp' : 'static'
}

/** Names of the bond and of the bridge that a link is a member of; empty where there is none. */
const mastersOf = ({ master }: Link, all: readonly Link[]) => {
  const of = (kind: LinkKind) =>
    all.some(({ name, kind: other }) => name === master && other === kind) ? (master ?? '') : ''
  return { bondName: of('bond'), bridgeName: of('bridge') }
}

/** A NIC or a Wi-Fi interface. */
export function toNic(link: Link, all: readonly Link[], shown: Shown): NicSummary {
  const type = typeOf(link)
  return {
    ...common(link, shown),
    kind: link.kind === 'wifi' ? 'wifi' : 'nic',
    // The published type has no `none`.
    ...(type === 'none' ? {} : { type }),
    ...mastersOf(link, all),
  }
}

export function toBond(link: Link, all: readonly Link[], shown: Shown): Bond {
  const { mode, miimon, lacpRate, hashPolicy } = { ...link.owner.device?.bond, ...link.bond }
  return {
    ...common(link, shown),
    type: typeOf(link),
    bridgeName: mastersOf(link, all).bridgeName,
    members: [...link.members],
    ...(mode === undefined ? {} : { mode }),
    ...(miimon === undefined ? {} : { miiMonitorSec: String(miimon / 1_000) }),
    ...(lacpRate === undefined || mode !== '802.3ad' ? {} : { lacpTransmitRate: lacpRate }),
    ...(hashPolicy === undefined ? {} : { transmitHashPolicy: hashPolicy }),
  }
}

export function toVlan(link: Link, all: readonly Link[], shown: Shown): Vlan {
  const { id, parent } = link.vlan ?? { id: link.owner.device?.vlanId ?? 0, parent: undefined }
  const parentKind = all.find(({ name }) => name === parent)?.kind
  return {
    ...common(link, shown),
    type: typeOf(link),
    bridgeName: mastersOf(link, all).bridgeName,
    ...(parent === undefined ? {} : { parentName: parent }),
    ...(parentKind === 'nic' || parentKind === 'bond' ? { parentType: parentKind } : {}),
    vlanID: String(id),
  }
}

export function toBridge(link: Link, _all: readonly Link[], shown: Shown): Bridge {
  const stp = link.owner.device?.isStpOn ?? link.bridge?.isStpOn
  return {
    ...common(link, shown),
    type: typeOf(link),
    members: [...link.members],
    ...(stp === undefined ? {} : { stpEnabled: stp }),
  }
}

/**
 * The links for the service API, peers and content: those with an address, and bridges.
 * @param selected name of the chosen one; empty: the interface of the default route
 */
export function managementOf(links: readonly Link[], selected: string): ManagementInterface {
  const candidates = links.flatMap((link) => {
    const own = shownAddress(link)
    if (own === undefined && link.kind !== 'bridge') return []
    const { name, kind } = link
    return [
      {
        name,
        type: kind === 'wifi' ? ('nic' as const) : kind,
        ...(own === undefined ? {} : { ipAddress: own.address }),
        status: statusOf(link),
      },
    ]
  })
  return { selected, candidates }
}
