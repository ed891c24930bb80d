// A change of links of netplan: their YAML files with other values, and the files that `netplan generate` makes of them for networkd. A trial has both
// in /run, where /run/netplan/NAME replaces /etc/netplan/NAME, so that a reload of systemd, which runs netplan's generator, does not take the trial
// back; of the generated files it has only those that differ, since networkd configures a link anew whose file is written. What edgehostd makes has a
// file of its own, 90-edgehostd-LINK.yaml; what its members had before stays at their nodes as a comment. Pure.

import { basename } from 'node:path'
import { isMap, isScalar, isSeq, parseDocument, type Document, type YAMLMap } from 'yaml'
import { isRecord, parseJson } from '../../base/json.ts'
import type { ChangeSet, StateFile } from '../change-set.ts'
import { bareAddress, isOfIpv4 } from '../../base/subnet.ts'
import type { TextFile } from '../links/configuration.ts'
import type { Link, NetworkReading } from '../links/links.ts'
import type { Addressing, Problem, WantedChange } from '../wanted.ts'
import { networkConfiguration, parseUnit } from './networkd-files.ts'
import {
  bondOptionsOf,
  expectedAfter,
  expectedNow,
  macFor,
  membersOf,
  notMadeHere,
  summaryOf,
  type Planned,
} from './planned.ts'

/** Folders of netplan, those first that win for files of the same name. */
export const netplanFolders = ['/run/netplan', '/etc/netplan', '/lib/netplan'] as const

const generated = '/run/systemd/network/10-netplan-'
const sections = { nic: 'ethernets', wifi: 'wifis', bond: 'bonds', vlan: 'vlans', bridge: 'bridges' } as const

/** A file of netplan that changes; without a text it goes. */
export interface ChangedFile {
  readonly path: string
  readonly text: string | undefined
}

const ourFile = (name: string) => `/etc/netplan/90-edgehostd-${name}.yaml`
const emptyFile = 'network:\n  version: 2\n'

interface Edit {
  readonly link: (name: string) => Link | undefined
  /** The node of a link, and the document that has it; a reason where there is none, or are two. */
  node(
    link: Link,
  ):
    | { readonly document: Document; readonly node: YAMLMap; readonly path: string }
    | { readonly reason: string }
  /** The file of what edgehostd makes. */
  own(name: string): Document
  remove(path: string): void
  has(path: string): boolean
  changed(): readonly ChangedFile[]
}

function createEdit({ links }: NetworkReading, files: readonly TextFile[]): Edit {
  const documents = files.map(({ path, text }) => ({ path, before: text, document: parseDocument(text) }))
  const made = new Map<string, Document>()
  const removed = new Set<string>()
  return {
    link: (name) => links.find((each) => each.name === name),
    node(link) {
      const path = ['network', sections[link.kind], idOf(link)]
      const holding = documents.filter(({ document }) => document.errors.length === 0 && document.hasIn(path))
      const [first, second] = holding
      const where = path.join('.')
      if (first === undefined) return { reason: `has no ${where} in /etc/netplan; see netplan get` }
      if (second !== undefined)
        return { reason: `is configured in ${first.path} and ${second.path}; put it into one of them first` }
      const node = first.document.getIn(path)
      if (!isMap(node)) return { reason: `has no settings below ${where} in ${first.path}` }
      return { document: first.document, node, path: first.path }
    },
    own(name) {
      const document = made.get(name) ?? parseDocument(emptyFile)
      made.set(name, document)
      return document
    },
    remove: (path) => void removed.add(path),
    has: (path) => documents.some((each) => basename(each.path) === basename(path)),
    changed: () => [
      ...documents.flatMap(({ path, before, document }): readonly ChangedFile[] => {
        if (removed.has(basename(path))) return [{ path, text: undefined }]
        const text = document.errors.length > 0 ? before : document.toString({ lineWidth: 0 })
        // A document is written in its own way only where something in it is changed.
        const isSame = text === before || text === parseDocument(before).toString({ lineWidth: 0 })
        return isSame ? [] : [{ path, text }]
      }),
      ...[...made].map(([name, document]) => ({
        path: ourFile(name),
        text: document.toString({ lineWidth: 0 }),
      })),
    ],
  }
}

/** The files that change, or what speaks against it. @param files in force, in the order of their names */
export function changedFiles(
  reading: NetworkReading,
  wanted: WantedChange,
  files: readonly TextFile[],
): { readonly files: readonly ChangedFile[] } | { readonly problems: readonly Problem[] } {
  const edit = createEdit(reading, files)
  const problems: Problem[] = []
  const refuse = (field: string, reason: string) => void problems.push({ field, reason })
  const link = edit.link(wanted.name)
  if (wanted.kind === 'delete') deleteLink(edit, link, wanted.name, problems)
  else if (wanted.kind === 'nic' || (wanted.kind === 'vlan' && link !== undefined)) {
    const found = link === undefined ? { reason: 'is no link of this host' } : edit.node(link)
    if ('reason' in found) refuse('name', `${wanted.name} ${found.reason}`)
    else changeMap(found.document, found.node, wanted.addressing)
  } else if (wanted.kind === 'vlan') makeVlan(edit, wanted, refuse)
  else changeMaster(edit, wanted, refuse)
  return problems.length > 0 ? { problems } : { files: edit.changed() }
}

type Refuse = (field: string, reason: string) => void

/** A parent or member has to be in a file of netplan; a link that no file has is put into ours. @returns its name in the YAML */
function nameBelow(edit: Edit, name: string, own: Document): string {
  const link = edit.link(name)
  if (link === undefined) return name
  if ('reason' in edit.node(link))
    own.setIn(['network', sections[link.kind], idOf(link)], own.createNode({ dhcp4: false }))
  return idOf(link)
}

function makeVlan(edit: Edit, wanted: WantedChange & { kind: 'vlan' }, refuse: Refuse): void {
  const { name, parent, id, addressing } = wanted
  if (edit.has(ourFile(name))) {
    refuse('name', `${name} has a file ${ourFile(name)} already; remove that first`)
    return
  }
  const own = edit.own(name)
  const node = own.createNode({ id, link: nameBelow(edit, parent, own) })
  own.setIn(['network', 'vlans', name], node)
  changeMap(own, node, addressing)
}

/** What a member gives to its master or leaves behind: all that is not of its hardware. */
const ofAddresses = [
  ...['addresses', 'routes', 'routing-policy', 'gateway4', 'gateway6', 'nameservers', 'dhcp4', 'dhcp6'],
  ...['dhcp4-overrides', 'dhcp6-overrides', 'dhcp-identifier', 'accept-ra', 'link-local', 'ipv6-privacy'],
  ...['ipv6-address-generation', 'ipv6-address-token'],
]
const former = ' edgehostd: before it was a member: '

/** Has the settings of a member as a comment. @returns them */
function hide(document: Document, node: YAMLMap): Readonly<Record<string, unknown>> {
  const all = node.toJSON() as Readonly<Record<string, unknown>>
  const own = Object.fromEntries(Object.entries(all).filter(([key]) => ofAddresses.includes(key)))
  for (const key of Object.keys(own)) node.delete(key)
  const none = document.createPair('dhcp4', false)
  if (isScalar(none.key)) none.key.commentBefore = `${former}${JSON.stringify(own)}`
  node.items.unshift(none)
  return own
}

/** Takes back what `hide` did; without its comment the link has no address. */
function reveal(document: Document, node: YAMLMap): void {
  const places = [node, ...node.items.flatMap(({ key }) => (isScalar(key) ? [key] : []))]
  for (const place of places) {
    const lines = place.commentBefore?.split('\n') ?? []
    const line = lines.find((each) => each.startsWith(former))
    if (line === undefined) continue
    const others = lines.filter((each) => each !== line)
    place.commentBefore = others.length === 0 ? null : others.join('\n')
    const own = parseJson(line.slice(former.length))
    node.delete('dhcp4')
    for (const [key, value] of Object.entries(isRecord(own) ? own : {}))
      if (ofAddresses.includes(key)) node.set(key, document.createNode(value))
    if (node.items.length === 0) node.set('dhcp4', false)
    return
  }
}

function changeMaster(edit: Edit, wanted: WantedChange & { kind: 'bond' | 'bridge' }, refuse: Refuse): void {
  const { name, kind, addressing, members } = wanted
  const { existing, all, joining, released, from } = membersOf(edit.link, wanted)
  if (existing === undefined && edit.has(ourFile(name))) {
    refuse('name', `${name} has a file ${ourFile(name)} already; remove that first`)
    return
  }
  const found = existing && edit.node(existing)
  if (found && 'reason' in found) {
    refuse('name', `${name} ${found.reason}`)
    return
  }
  const document = found?.document ?? edit.own(name)
  const names = members.map((member) => nameBelow(edit, member, document))
  let handed: Readonly<Record<string, unknown>> = {}
  for (const member of joining) {
    const node = edit.node(member)
    if ('reason' in node) continue
    const settings = hide(node.document, node.node)
    if (member === from) handed = settings
  }
  const node = found?.node ?? document.createNode({})
  if (!found) {
    document.setIn(['network', sections[kind], name], node)
    const mac = macFor(all, from)
    if (mac !== undefined) node.set('macaddress', mac)
    for (const [key, value] of Object.entries(handed)) node.set(key, document.createNode(value))
  }
  node.set('interfaces', document.createNode(names, { flow: true }))
  for (const [key, value] of Object.entries(optionsOf(wanted, !found)))
    if (value !== undefined) node.setIn(['parameters', key], value)
  changeMap(document, node, addressing)
  for (const member of released) release(edit, member)
}

/** Options by the names of netplan, which turns STP on where a bridge says nothing. */
function optionsOf(
  wanted: WantedChange & { kind: 'bond' | 'bridge' },
  isNew: boolean,
): Readonly<Record<string, string | number | boolean | undefined>> {
  if (wanted.kind === 'bridge') return { stp: wanted.isStpOn ?? (isNew ? false : undefined) }
  const { mode, miimon, lacpRate, hashPolicy } = bondOptionsOf(wanted.options, isNew)
  return {
    mode,
    'mii-monitor-interval': miimon,
    'lacp-rate': lacpRate,
    'transmit-hash-policy': hashPolicy,
  }
}

function release(edit: Edit, member: string): void {
  const link = edit.link(member)
  const found = link && edit.node(link)
  if (found && 'node' in found) reveal(found.document, found.node)
}

function deleteLink(edit: Edit, link: Link | undefined, name: string, problems: Problem[]): void {
  const found = link && edit.node(link)
  const path = found && 'path' in found ? found.path : undefined
  if (path === undefined || basename(path) !== basename(ourFile(name))) {
    problems.push(notMadeHere(name, path))
    return
  }
  for (const member of link?.members ?? []) release(edit, member)
  edit.remove(basename(path))
}

/** The name of a link in the YAML; with `match` and `set-name` the link may have another one. */
const idOf = ({ owner, name }: Link): string =>
  (owner.configured?.files ?? [])
    .find((path) => path.startsWith(generated))
    ?.slice(generated.length)
    .replace(/\.network$/, '') ?? name

/** Changes IPv4, MTU and name servers of a link; all else stays, comments too. */
function changeMap(document: Document, node: YAMLMap, addressing: Addressing): void {
  const { type, address, gateway, mtu, nameservers } = addressing
  if (type === 'dhcp') node.set('dhcp4', true)
  else if (node.has('dhcp4')) node.set('dhcp4', false)
  changeAddresses(document, node, type === 'static' ? address : undefined)
  changeGateway(document, node, type === 'static' ? gateway : undefined)
  if (mtu !== undefined) node.set('mtu', mtu)
  if (nameservers === undefined) return
  if (nameservers.length > 0) {
    if (!isMap(node.get('nameservers'))) node.set('nameservers', document.createNode({}))
    node.setIn(['nameservers', 'addresses'], document.createNode(nameservers, { flow: true }))
  } else if (isMap(node.get('nameservers'))) node.deleteIn(['nameservers', 'addresses'])
}

/** The address of an item, which is a text, or a map of it to its options. */
function addressOf(item: unknown): string {
  if (isMap(item)) {
    const key = item.items[0]?.key
    return isScalar(key) ? String(key.value) : ''
  }
  return isScalar(item) ? String(item.value) : ''
}

function changeAddresses(document: Document, node: YAMLMap, address: string | undefined): void {
  const list = node.get('addresses')
  if (!isSeq(list)) {
    if (address !== undefined) node.set('addresses', document.createNode([address], { flow: true }))
    return
  }
  const at = list.items.findIndex((item) => isOfIpv4(addressOf(item)))
  if (address === undefined) {
    if (at >= 0) list.delete(at)
    if (list.items.length === 0) node.delete('addresses')
    return
  }
  const other = list.items.findIndex(
    (item, index) => index !== at && bareAddress(addressOf(item)) === bareAddress(address),
  )
  if (other >= 0) list.delete(other)
  const own = list.items[at]
  const key = isMap(own) ? own.items[0]?.key : undefined
  // Options of the address, as its label, stay.
  if (isScalar(key)) key.value = address
  else if (isScalar(own)) own.value = address
  else list.items.unshift(document.createNode(address))
}

const isDefault = (to: unknown) => ['default', '0.0.0.0/0'].includes(String(to))

function changeGateway(document: Document, node: YAMLMap, gateway: string | undefined): void {
  const routes = node.get('routes')
  const items = isSeq(routes) ? routes.items : []
  const isOwn = (item: unknown): item is YAMLMap =>
    isMap(item) && isDefault(item.get('to')) && !item.has('table') && isOfIpv4(String(item.get('via')))
  const [first] = items.filter(isOwn)
  if (gateway === undefined) {
    node.delete('gateway4')
    if (!isSeq(routes)) return
    routes.items = items.filter((item) => !isOwn(item))
    if (routes.items.length === 0) node.delete('routes')
  } else if (node.has('gateway4')) node.set('gateway4', gateway)
  // Its metric stays.
  else if (first !== undefined) first.set('via', gateway)
  else {
    const route = document.createNode({ to: 'default', via: gateway }, { flow: true })
    if (isSeq(routes)) routes.items.unshift(route)
    else node.set('routes', document.createNode([route]))
  }
}

interface NetplanFiles {
  /** Files of YAML in force before. */
  readonly files: readonly TextFile[]
  readonly changed: readonly ChangedFile[]
  /** Files of networkd that netplan has made, by their paths. */
  readonly before: ReadonlyMap<string, string>
  /** Those that it makes of the changed files. */
  readonly after: ReadonlyMap<string, string>
  /** cloud-init writes its file of netplan again at each boot unless its configuration forbids it. */
  readonly hasCloudInit: boolean
}

/** Plans a change, by the files that netplan makes. */
export function planNetplan({ links }: NetworkReading, wanted: WantedChange, all: NetplanFiles): Planned {
  const { files, changed, before, after } = all
  const differing = [...new Set([...before.keys(), ...after.keys()])]
    .filter((path) => before.get(path) !== after.get(path))
    .sort()
  if (differing.length === 0) return { kind: 'unchanged' }
  const content = (text: string | undefined): StateFile['content'] =>
    text === undefined ? 'absent' : { text }
  const file = (path: string, text: string | undefined, mode = 0o644): StateFile => ({
    path,
    mode,
    content: content(text),
  })
  // YAML may hold a password of Wi-Fi.
  const secret = 0o600
  const trialOf = ({ path }: ChangedFile) => `/run/netplan/${basename(path)}`
  const trialBefore = (each: ChangedFile) => files.find(({ path }) => path === trialOf(each))?.text
  const id = (name: string) => {
    const link = links.find((each) => each.name === name)
    return link === undefined ? name : idOf(link)
  }
  const device = `${generated}${id(wanted.name)}.netdev`
  const isRemade = wanted.kind !== 'nic' && differing.includes(device)
  const touched = new Set([
    wanted.name,
    ...links
      .filter((each) => isOf(each, differing) || differing.some((path) => isOfId(path, idOf(each))))
      .map((each) => each.name),
    // Members that stay lose it, and join the new one.
    ...(isRemade ? (links.find(({ name }) => name === wanted.name)?.members ?? []) : []),
  ])
  const configuredAfter = (name: string) => {
    const text = after.get(`${generated}${id(name)}.network`)
    return text === undefined ? undefined : networkConfiguration(parseUnit(text), [])
  }
  const change: ChangeSet = {
    backend: 'netplan',
    links: [...touched],
    before: {
      files: [
        ...changed.map((each) => file(trialOf(each), trialBefore(each), secret)),
        ...differing.map((path) => file(path, before.get(path))),
      ],
      devices: isRemade && before.has(device) ? [wanted.name] : [],
      up: [],
      expected: [...touched].flatMap((name) => expectedNow(links.find((each) => each.name === name))),
    },
    after: {
      files: [
        // One that goes is hidden by an empty one of its name.
        ...changed.map((each) => file(trialOf(each), each.text ?? emptyFile, secret)),
        ...differing.map((path) => file(path, after.get(path))),
      ],
      devices: isRemade && after.has(device) ? [wanted.name] : [],
      up: [],
      expected: [...touched].flatMap((name) =>
        expectedAfter(
          wanted,
          name,
          links.find((each) => each.name === name),
          configuredAfter(name),
        ),
      ),
    },
    kept: [
      ...changed.map(({ path, text }) => file(`/etc/netplan/${basename(path)}`, text, secret)),
      ...(all.hasCloudInit && changed.some(({ path }) => path.includes('cloud-init'))
        ? [file('/etc/cloud/cloud.cfg.d/99-disable-network-config.cfg', 'network: {config: disabled}\n')]
        : []),
    ],
    summary: summaryOf(wanted),
  }
  return { kind: 'change', change }
}

const isOf = ({ owner }: Link, paths: readonly string[]) =>
  (owner.configured?.files ?? []).some((path) => paths.includes(path))
/** Whether netplan makes a file for a link of a name in the YAML. */
const isOfId = (path: string, id: string) => path === `${generated}${id}.network`
