// Changes of several NICs in one trial. They are planned one after the other, each on what those before it leave, and each is judged as if the others were
// made already: so two links may exchange their addresses, and the default route may move from one to the other. Pure.

import { isIPv4 } from 'node:net'
import { parseSubnet, networkOf, spellSubnet } from '../base/subnet.ts'
import { parseInterfaces } from './backends/interfaces-file.ts'
import type { ChangeSet, ExpectedLink, NetworkState, StateFile } from './change-set.ts'
import type { RunningRoute } from './links/kernel.ts'
import type { Link, NetworkReading } from './links/links.ts'
import type { WantedChange } from './wanted.ts'
import { defaultRoutesOf } from './wire.ts'

/** A change of the addresses of a NIC. */
export type NicChange = Extract<WantedChange, { readonly kind: 'nic' }>

/** The network as it will be by other changes of NICs, for the judgement of one. */
export function withOthers(reading: NetworkReading, others: readonly NicChange[]): NetworkReading {
  const links = reading.links.map((link) => {
    const other = others.find(({ name }) => name === link.name)
    return other === undefined ? link : linkAfter(link, other)
  })
  return { ...reading, links }
}

/** A lease brings a default route, as a change to DHCP alone is judged; its gateway and metric are not known before. */
function linkAfter(link: Link, { addressing: { type, address, gateway } }: NicChange): Link {
  const { configured } = link.owner
  if (type === 'dhcp' && configured?.type === 'dhcp') return link
  const subnet = address === undefined ? undefined : parseSubnet(address)
  const route = (destination: string, more: Partial<RunningRoute>): RunningRoute => ({
    family: 'ipv4',
    destination,
    metric: 0,
    table: 'main',
    protocol: 'static',
    ...more,
  })
  const metric = configured?.metric ?? defaultRoutesOf(link)[0]?.metric ?? 0
  const ways = [
    ...(subnet === undefined ? [] : [route(spellSubnet(networkOf(subnet)), { protocol: 'kernel' })]),
    ...(gateway === undefined ? [] : [route('default', { gateway, metric })]),
    ...(type === 'dhcp' ? [route('default', { metric: Infinity, protocol: 'dhcp' })] : []),
  ]
  return {
    ...link,
    addresses: [
      ...(subnet === undefined ? [] : [{ ...subnet, scope: 'global', isDynamic: false }]),
      ...link.addresses.filter((each) => !isIPv4(each.address)),
    ],
    routes: [...ways, ...link.routes.filter(({ family }) => family !== 'ipv4')],
  }
}

/** The files of ifupdown as a change leaves them, for the plan of the next one: it may be in the same file. */
export function withKept(reading: NetworkReading, { backend, kept }: ChangeSet): NetworkReading {
  const { ifupdown } = reading.states
  if (backend !== 'ifupdown' || ifupdown === undefined) return reading
  const files = ifupdown.files.map((file) => {
    const content = kept.find(({ path }) => path === file.path)?.content
    return typeof content === 'object' ? { ...file, text: content.text } : file
  })
  return {
    ...reading,
    states: { ...reading.states, ifupdown: { ...ifupdown, files, interfaces: parseInterfaces(files) } },
  }
}

/** Two changes as one, of which the second was planned on what the first leaves. Both are of one backend. */
export function together(first: ChangeSet, second: ChangeSet): ChangeSet {
  return {
    backend: first.backend,
    links: union(first.links, second.links),
    before: joined(first.before, second.before, 'before'),
    after: joined(first.after, second.after, 'after'),
    kept: merged(first.kept, second.kept, pathOf, 'after'),
    asked: [...(first.asked ?? []), ...(second.asked ?? [])],
    summary: `${first.summary}; ${second.summary}`,
  }
}

const union = (one: readonly string[], other: readonly string[]) => [...new Set([...one, ...other])]

/** All of both in their order. What both have is, before the change, that of the first; after it, that of the second. */
function merged<T>(
  first: readonly T[],
  second: readonly T[],
  keyOf: (each: T) => string,
  when: 'before' | 'after',
) {
  const found = new Map(first.map((each) => [keyOf(each), each]))
  for (const each of second) if (when === 'after' || !found.has(keyOf(each))) found.set(keyOf(each), each)
  return [...found.values()]
}
const pathOf = ({ path }: StateFile) => path
const linkOf = ({ link }: ExpectedLink) => link

function joined(one: NetworkState, other: NetworkState, when: 'before' | 'after'): NetworkState {
  return {
    files: merged(one.files, other.files, pathOf, when),
    devices: union(one.devices, other.devices),
    up: union(one.up, other.up),
    expected: merged(one.expected, other.expected, linkOf, when),
  }
}
