// What speaks against a change of the network, all of it at once, by what the host has now and the request. The backends take some of it without a
// word and lose the host with it: networkd takes a gateway outside of its subnet with exit code 0, and the default route is gone. Pure.

import { isIPv4 } from 'node:net'
import {
  isInSubnet,
  isOfNoHost,
  isReserved,
  isWithin,
  overlap,
  parseSubnet,
  spellSubnet,
  networkOf,
  type Subnet,
} from '../../base/subnet.ts'
import { isByDhcp, type Backend, type ExpectedLink } from '../change-set.ts'
import { handingOver } from '../backends/planned.ts'
import { bareAddress, isOfIpv4 } from '../../base/subnet.ts'
import { kindNames } from '../links/kernel.ts'
import type { Link, NetworkReading } from '../links/links.ts'
import { backendNames } from '../links/owners.ts'
import type { Addressing, Problem, WantedChange } from '../wanted.ts'
import { defaultRoutesOf, notWritable, shownAddress } from '../wire.ts'

/** What the pre-flight has to know beside the network. */
export interface PreflightFacts {
  /** Addresses of the cluster on this host, canonical. */
  readonly clusterAddresses: ReadonlySet<string>
  /** Whether something uses the name servers that a backend has for its links. */
  readonly usesNameservers: (backend: Backend) => boolean
  /** Whether there is a system bus, over which the backends are told to load their files. */
  readonly hasBus: boolean
  /** Whether a program is on this host. */
  readonly hasProgram: (name: string) => boolean
  /** `?dropAddress=true`: addresses of new members go. */
  readonly dropsAddresses: boolean
  /** What the members of a bond or bridge of ours have when it is deleted, by the plan of that. */
  readonly released: readonly ExpectedLink[]
}

/** Judgement of a change. */
export interface Judged {
  readonly problems: readonly Problem[]
  /** The backend that makes it; undefined where it cannot be made. */
  readonly backend: Backend | undefined
  /** Routes that go with it, for people: `default via 192.0.2.1`. */
  readonly lostRoutes: readonly string[]
  /** Addresses under which the host will be reached then. */
  readonly reachableBy: readonly string[]
}

/** Judges a change; a problem names the field of the request. */
export function judge(reading: NetworkReading, wanted: WantedChange, facts: PreflightFacts): Judged {
  const { links } = reading
  const problems: Problem[] = []
  const refuse = (field: string, reason: string) => void problems.push({ field, reason })
  const find = (name: string) => links.find((link) => link.name === name)
  const own = find(wanted.name)
  const place: Place = { wanted, own, links, find, facts, refuse }
  const backend = backendFor(reading, wanted, place)
  if (backend !== undefined) {
    if (!facts.hasBus && backend !== 'ifupdown')
      refuse('name', `${wanted.name} cannot be changed without a system bus: apt-get install dbus`)
    for (const each of programsFor(backend, wanted))
      if (!facts.hasProgram(each.program))
        refuse(
          'name',
          `${wanted.name} cannot be changed without the package ${each.package}: apt-get install ${each.package}`,
        )
  }
  if (wanted.kind === 'nic') judgeNic(place)
  else if (wanted.kind === 'delete') judgeDeletion(place, wanted)
  else if (wanted.kind === 'vlan') judgeVlan(place, wanted)
  else judgeMembers(place, wanted)
  const goes = linksThatLose(place)
  if (wanted.kind !== 'delete') judgeAddressing(place, wanted.addressing, { goes, backend })
  const { released } = facts
  judgeDefaultRoute(place, goes, released)
  const isGone = (link: Link) => goes.some(({ name }) => name === link.name)
  return {
    problems,
    backend: problems.length > 0 ? undefined : backend,
    lostRoutes: goes.flatMap(lostRoutesOf(wanted)).filter((route) => !isReplaced(route, released)),
    reachableBy: [
      ...(wanted.kind === 'delete' || wanted.addressing.address === undefined
        ? []
        : [bareAddress(wanted.addressing.address)]),
      ...released.flatMap(({ addresses }) => addresses.map(bareAddress)),
      ...links
        .filter((link) => !isGone(link))
        .flatMap(({ addresses }) => addresses)
        .filter(({ scope }) => scope === 'global')
        .map(({ address }) => address),
    ],
  }
}

interface Place {
  readonly wanted: WantedChange
  /** The link, where there is one of the name. */
  readonly own: Link | undefined
  readonly links: readonly Link[]
  readonly find: (name: string) => Link | undefined
  readonly facts: PreflightFacts
  readonly refuse: (field: string, reason: string) => void
}

/** The backend of the link, or of those that a new one is made of; one that nobody configures can be a member or a parent. */
function backendFor(reading: NetworkReading, wanted: WantedChange, place: Place): Backend | undefined {
  const { own, find, refuse } = place
  if (own !== undefined) {
    const reason = notWritable(own)
    if (reason !== undefined) refuse('name', `${own.name} ${reason}`)
    return own.owner.backend
  }
  if (wanted.kind === 'nic' || wanted.kind === 'delete') {
    refuse('name', `${wanted.name} is no link of this host`)
    return undefined
  }
  const below = wanted.kind === 'vlan' ? [wanted.parent] : wanted.members
  const owners = new Map<Backend, string>()
  for (const [index, name] of below.entries()) {
    const link = find(name)
    const field = wanted.kind === 'vlan' ? 'parentName' : `members[${index}]`
    if (link === undefined || link.owner.name === 'nobody') continue
    const reason = notWritable(link)
    if (reason !== undefined) refuse(field, `${name} ${reason}`)
    if (link.owner.backend === undefined) continue
    owners.set(link.owner.backend, name)
  }
  const [first, second] = [...owners]
  if (first !== undefined && second !== undefined) {
    refuse(
      wanted.kind === 'vlan' ? 'parentName' : 'members',
      `are configured by two programs: ${first[1]} by ${backendNames[first[0]]}, ${second[1]} by ${backendNames[second[0]]}; a new link belongs to one`,
    )
    return undefined
  }
  return first?.[0] ?? backendOfHost(reading, place)
}

/** Of a new link on links of nobody: the backend of the default route, otherwise the only one that runs. */
function backendOfHost({ links, states }: NetworkReading, { refuse, wanted }: Place): Backend | undefined {
  const routed = defaultRoutes(links)[0]?.link.owner.backend
  if (routed !== undefined) return routed
  const used = [...new Set(links.flatMap(({ owner }) => owner.backend ?? []))]
  const running: readonly Backend[] = [
    ...(states.networkd === undefined ? [] : ['networkd' as const]),
    ...(states.networkManager === undefined ? [] : ['networkmanager' as const]),
  ]
  const candidates = used.length > 0 ? used : running
  if (candidates.length === 1) return candidates[0]
  refuse(
    'name',
    `${wanted.name} has no program to configure it: none of systemd-networkd, netplan, NetworkManager and ifupdown configures a link of this host; start systemd-networkd with systemctl enable --now systemd-networkd`,
  )
  return undefined
}

/** Programs of Debian packages that a change needs. */
function programsFor(
  backend: Backend,
  wanted: WantedChange,
): readonly { program: string; package: string }[] {
  const { kind } = wanted
  // Who has an address is asked before it is taken; the package `arping` has other options.
  const arping =
    kind !== 'delete' && wanted.addressing.type === 'static'
      ? [{ program: 'arping', package: 'iputils-arping' }]
      : []
  if (backend !== 'ifupdown') return arping
  return [
    ...arping,
    ...(kind === 'bond' ? [{ program: 'ifenslave', package: 'ifenslave' }] : []),
    ...(kind === 'bridge' ? [{ program: 'brctl', package: 'bridge-utils' }] : []),
    ...(kind === 'vlan' ? [{ program: 'vconfig', package: 'vlan' }] : []),
  ]
}

function judgeNic({ own, refuse, facts, wanted }: Place): void {
  if (own === undefined || wanted.kind !== 'nic') return
  if (own.kind !== 'nic' && own.kind !== 'wifi')
    refuse(
      'name',
      `${own.name} is a ${kindNames[own.kind]}, which is changed at network/${own.kind}s/${own.name}`,
    )
  if (own.master !== undefined)
    refuse(
      'name',
      `${own.name} is a member of ${own.master}, which has the address; change ${own.master}, or take ${own.name} out of it`,
    )
  judgeClusterAddress(own, wanted.addressing, facts, refuse)
}

/** The address of the node of the cluster on a link; one that is held for the control plane has no network. */
const nodeAddressOn = ({ addresses }: Link, { clusterAddresses }: PreflightFacts) =>
  addresses.find(({ address, prefixLength }) => prefixLength < 32 && clusterAddresses.has(address))

/** The address of the node of the cluster stays; its MTU and name servers may change. */
function judgeClusterAddress(
  own: Link,
  addressing: Addressing,
  facts: PreflightFacts,
  refuse: Place['refuse'],
): void {
  const held = nodeAddressOn(own, facts)
  if (held === undefined || !isIPv4(held.address)) return
  const { configured } = own.owner
  const isKept =
    addressing.type === 'static'
      ? addressing.address === `${held.address}/${held.prefixLength}`
      : addressing.type === 'dhcp' && configured?.type === 'dhcp'
  if (!isKept)
    refuse(
      addressing.type === 'static' ? 'ip' : 'type',
      `would take ${held.address} from ${own.name}, which is the address of the cluster of this host; only MTU, gateway and name servers of ${own.name} can be changed while it has a cluster`,
    )
}

function judgeMembers(place: Place, wanted: WantedChange & { kind: 'bond' | 'bridge' }): void {
  const { own, links, find, facts, refuse } = place
  const { kind, name, members, addressing } = wanted
  if (own !== undefined && own.kind !== kind)
    refuse('name', `${name} is a ${kindNames[own.kind]}, not a ${kind}`)
  const allowed: readonly Link['kind'][] = kind === 'bond' ? ['nic'] : ['nic', 'bond', 'vlan']
  const joining: Link[] = []
  for (const [index, member] of members.entries()) {
    const field = `members[${index}]`
    const link = find(member)
    if (link === undefined) {
      refuse(field, `${member} is no link of this host`)
      continue
    }
    if (!allowed.includes(link.kind))
      refuse(field, `${member} is a ${kindNames[link.kind]}, which cannot be a member of a ${kind}`)
    if (link.master !== undefined && link.master !== name)
      refuse(field, `${member} is a member of ${link.master}; take it out of that first`)
    const [vlan] = links.filter(({ vlan: of }) => of?.parent === member)
    if (vlan !== undefined && !(kind === 'bridge' && vlan.name === name))
      refuse(field, `${member} carries the VLAN ${vlan.name}; delete it, and make it again on ${name}`)
    if (nodeAddressOn(link, facts) !== undefined)
      refuse(field, `${member} has the address of the cluster of this host, which would move to ${name}`)
    if (link.master !== name) joining.push(link)
  }
  const heir = handingOver(joining, addressing)
  for (const link of joining) {
    const address = shownAddress(link)
    if (link === heir || facts.dropsAddresses || address === undefined) continue
    refuse(
      `members[${members.indexOf(link.name)}]`,
      `${link.name} has the address ${address.address}, which ${name} does not take over; give ${name} this address, or say dropAddress=true`,
    )
  }
  if (
    own !== undefined &&
    own.vlans.length > 0 &&
    wanted.kind === 'bond' &&
    changesOptions(own, wanted.options)
  )
    refuse(
      'mode',
      `of ${name} cannot be changed while it carries ${own.vlans.join(' and ')}: the bond is made anew for it`,
    )
  if (own !== undefined) judgeClusterAddress(own, addressing, facts, refuse)
}

const changesOptions = ({ bond = {} }: Link, options: { mode?: string; miiMonitorSec?: string }) =>
  (options.mode !== undefined && options.mode !== bond.mode) ||
  (options.miiMonitorSec !== undefined && Number(options.miiMonitorSec) * 1_000 !== bond.miimon)

function judgeVlan(
  place: Place,
  { name, parent, parentType, id, addressing }: WantedChange & { kind: 'vlan' },
): void {
  const { own, links, find, facts, refuse } = place
  if (own !== undefined && own.kind !== 'vlan')
    refuse('name', `${name} is a ${kindNames[own.kind]}, not a VLAN`)
  const link = find(parent)
  if (link === undefined) refuse('parentName', `${parent} is no link of this host`)
  else if (link.kind !== parentType)
    refuse('parentType', `is ${parentType}, and ${parent} is a ${kindNames[link.kind]}`)
  else if (link.master !== undefined)
    refuse('parentName', `${parent} is a member of ${link.master}; make the VLAN on that`)
  const same = links.find(
    ({ vlan, name: other }) => vlan?.parent === parent && vlan.id === id && other !== name,
  )
  if (same !== undefined) refuse('vlanID', `is ${id}, which ${parent} carries as ${same.name}`)
  const { mtu } = addressing
  if (mtu !== undefined && link !== undefined && mtu > link.mtu)
    refuse('mtu', `is ${mtu}, and ${parent} has ${link.mtu}; raise that first`)
  if (own !== undefined) judgeClusterAddress(own, addressing, facts, refuse)
}

function judgeDeletion(
  { own, links, facts, refuse }: Place,
  wanted: WantedChange & { kind: 'delete' },
): void {
  if (own === undefined) return
  if (own.kind !== wanted.of) refuse('name', `${own.name} is a ${kindNames[own.kind]}, not a ${wanted.of}`)
  const carried = links.filter(({ vlan }) => vlan?.parent === own.name).map(({ name }) => name)
  if (carried.length > 0)
    refuse('name', `${own.name} carries the VLAN ${carried.join(' and ')}; delete that first`)
  if (own.master !== undefined)
    refuse('name', `${own.name} is a member of ${own.master}; take it out of that first`)
  if (own.addresses.some(({ address }) => facts.clusterAddresses.has(address)))
    refuse('name', `${own.name} has an address of the cluster of this host`)
}

/** The links whose present addresses and routes of IPv4 the change takes away or replaces. */
function linksThatLose({ wanted, own, find }: Place): readonly Link[] {
  if (wanted.kind === 'bond' || wanted.kind === 'bridge')
    return [own, ...wanted.members.map(find)].filter((link) => link !== undefined)
  return own === undefined ? [] : [own]
}

const subnetOf = (link: Link): readonly Subnet[] =>
  link.addresses
    .filter(({ address, scope, prefixLength }) => isIPv4(address) && scope === 'global' && prefixLength < 32)
    .map(({ address, prefixLength }) => ({ address, prefixLength }))

function judgeAddressing(
  place: Place,
  addressing: Addressing,
  { goes, backend }: { readonly goes: readonly Link[]; readonly backend: Backend | undefined },
): void {
  const { links, wanted, facts, refuse } = place
  const { type, address, gateway, nameservers, mtu } = addressing
  // The backends take it, write an error to their log, and leave the link as it is.
  const carriers = wanted.kind === 'vlan' ? [] : goes
  for (const { name, maxMtu } of carriers)
    if (mtu !== undefined && maxMtu !== undefined && mtu > maxMtu)
      refuse('mtu', `is ${mtu}, and ${name} takes ${maxMtu} at most`)
  if (nameservers !== undefined && nameservers.length > 0 && backend && !facts.usesNameservers(backend))
    refuse(
      'nameservers',
      `would be used by nothing: apt-get install ${backend === 'ifupdown' ? 'resolvconf' : 'systemd-resolved'}`,
    )
  if (type !== 'static' || address === undefined) return
  const subnet = parseSubnet(address)
  if (subnet === undefined) return
  const own = bareAddress(address)
  const network = networkOf(subnet)
  if (isUnusable(own, subnet)) refuse('ip', `${own} is no address for a host in ${spellSubnet(network)}`)
  if (gateway !== undefined) {
    if (gateway === own) refuse('gateway', `is ${gateway}, the address of the host itself`)
    else if (!isInSubnet(gateway, subnet))
      refuse(
        'gateway',
        `${gateway} is not in the network ${spellSubnet(network)} of ${own}; take one of that network, or correct subnet`,
      )
    else if (isUnusable(gateway, subnet))
      refuse('gateway', `${gateway} is no address for a host in ${spellSubnet(network)}`)
  }
  const before = goes.flatMap(subnetOf)
  const stays = links.filter(({ name }) => name !== wanted.name && !goes.some((link) => link.name === name))
  for (const link of stays) {
    const same = link.addresses.some((each) => each.address === own)
    // Two links that are in one network already are not of this change.
    const isNew = (each: Subnet) => !before.some((was) => overlap(was, each))
    const other = subnetOf(link).find((each) => overlap(each, subnet) && isNew(each))
    if (same) refuse('ip', `${own} is an address of ${link.name}`)
    else if (other !== undefined)
      refuse(
        'ip',
        `${spellSubnet(network)} is the network of ${link.name} too (${spellSubnet(networkOf(other))}): answers would leave by one of both`,
      )
    // Networks that are reached by a route of another link, of pods for example, are not to be hidden; the default route is none of these.
    const route = link.routes.find(({ destination, table, protocol }) => {
      const to =
        destination === 'default' || table !== 'main' || protocol === 'kernel'
          ? undefined
          : parseSubnet(destination)
      return to !== undefined && isOfIpv4(destination) && isWithin(to, subnet)
    })
    if (!same && other === undefined && route !== undefined)
      refuse('ip', `${spellSubnet(network)} hides the route of ${link.name} to ${route.destination}`)
  }
}

const isUnusable = (address: string, subnet: Subnet) => isOfNoHost(address) || isReserved(address, subnet)

interface DefaultRoute {
  readonly link: Link
  readonly gateway: string | undefined
  readonly metric: number
}

const defaultRoutes = (links: readonly Link[]): readonly DefaultRoute[] =>
  links
    .flatMap((link) =>
      defaultRoutesOf(link).map(({ gateway, metric }): DefaultRoute => ({ link, gateway, metric })),
    )
    .toSorted((a, b) => a.metric - b.metric)

/** Where there was a default route, one has to be left; two of the same metric are used by chance. */
function judgeDefaultRoute(place: Place, goes: readonly Link[], released: readonly ExpectedLink[]): void {
  const { links, wanted, own, refuse } = place
  const now = defaultRoutes(links)
  const stays = now.filter(({ link }) => !goes.some(({ name }) => name === link.name))
  const addressing = wanted.kind === 'delete' ? undefined : wanted.addressing
  const bringsOne =
    addressing?.gateway !== undefined ||
    addressing?.type === 'dhcp' ||
    released.some((each) => isByDhcp(each) || each.gateway !== undefined)
  const field = addressing === undefined ? 'name' : addressing.type === 'static' ? 'gateway' : 'type'
  if (now.length > 0 && stays.length === 0 && !bringsOne) {
    const [route] = now
    refuse(
      field,
      `would leave this host without a default route: that of ${route?.link.name}${route?.gateway === undefined ? '' : ` over ${route.gateway}`} goes, and no other link has one; give a gateway, or one to another link first`,
    )
  }
  if (addressing?.gateway === undefined) return
  // NetworkManager numbers the metrics itself.
  const metric = own?.owner.configured?.metric ?? (own && defaultRoutesOf(own)[0]?.metric) ?? 0
  if (now.some(({ link, gateway }) => link === own && gateway === addressing.gateway)) return
  const other = stays.find((route) => route.metric === metric)
  if (other !== undefined)
    refuse(
      'gateway',
      `makes a second default route of the metric ${metric}: ${other.link.name} has one${other.gateway === undefined ? '' : ` over ${other.gateway}`}; leave the gateway out, or take that one away first`,
    )
}

const lostRoutesOf =
  (wanted: WantedChange) =>
  (link: Link): readonly string[] =>
    link.routes
      .filter(({ family, protocol, table }) => family === 'ipv4' && protocol !== 'kernel' && table === 'main')
      .filter(({ destination, gateway }) => {
        if (wanted.kind === 'delete') return true
        const { addressing } = wanted
        const isSameLink = link.name === wanted.name
        if (destination === 'default')
          return (
            addressing.type !== 'dhcp' &&
            !(addressing.gateway !== undefined && addressing.gateway === gateway)
          )
        // A route over a gateway that the new network does not reach cannot be.
        const subnet = addressing.address === undefined ? undefined : parseSubnet(addressing.address)
        return gateway === undefined ? !isSameLink : subnet !== undefined && !isInSubnet(gateway, subnet)
      })
      .map(
        ({ destination, gateway }) =>
          `${destination}${gateway === undefined ? '' : ` via ${gateway}`} of ${link.name}`,
      )

const isReplaced = (route: string, released: readonly ExpectedLink[]) =>
  released.some(({ gateway }) => gateway !== undefined && route.startsWith(`default via ${gateway} `))
