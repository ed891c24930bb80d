// A change of a link of netplan: its YAML file with other values, and the files that `netplan generate` makes of it for networkd. A trial has both in
// /run, where /run/netplan/NAME replaces /etc/netplan/NAME, so that a reload of systemd, which runs netplan's generator, does not take the trial
// back; of the generated files it has only those that differ, since networkd configures a link anew whose file is written. Pure.

import { basename } from 'node:path'
import { isMap, isScalar, isSeq, parseDocument, type Document, type YAMLMap } from 'yaml'
import type { ChangeSet, StateFile } from '../change-set.ts'
import { bareAddress, isOfIpv4 } from '../../base/subnet.ts'
import type { TextFile } from '../links/configuration.ts'
import type { Link, NetworkReading } from '../links/links.ts'
import type { Addressing, Problem, WantedChange } from '../wanted.ts'
import { networkConfiguration, parseUnit } from './networkd-files.ts'
import { expectedBy, expectedNow, onlyAddressing, summaryOf, type Planned } from './planned.ts'

/** Folders of netplan, those first that win for files of the same name. */
export const netplanFolders = ['/run/netplan', '/etc/netplan', '/lib/netplan'] as const

const generated = '/run/systemd/network/10-netplan-'
const sections = { nic: 'ethernets', wifi: 'wifis', bond: 'bonds', vlan: 'vlans', bridge: 'bridges' } as const

/** The changed file of a link, or what speaks against it. @param files in force, in the order of their names */
export function changedFile(
  { links }: NetworkReading,
  wanted: WantedChange,
  files: readonly TextFile[],
): { readonly file: TextFile } | { readonly problems: readonly Problem[] } {
  const link = links.find(({ name }) => name === wanted.name)
  const problems = onlyAddressing(wanted, link, 'netplan')
  if (link === undefined || problems.length > 0 || wanted.kind === 'delete') return { problems }
  const refuse = (reason: string) => ({ problems: [{ field: 'name', reason: `${link.name} ${reason}` }] })
  const id = idOf(link)
  const path = ['network', sections[link.kind], id]
  const holding = files.flatMap((file) => {
    const document = parseDocument(file.text)
    return document.errors.length === 0 && document.hasIn(path) ? [{ file, document }] : []
  })
  const [first, second] = holding
  if (first === undefined) return refuse(`has no ${path.join('.')} in /etc/netplan; see netplan get`)
  if (second !== undefined)
    return refuse(
      `is configured in ${first.file.path} and ${second.file.path}; put it into one of them first`,
    )
  const node = first.document.getIn(path)
  if (!isMap(node)) return refuse(`has no settings below ${path.join('.')} in ${first.file.path}`)
  changeMap(first.document, node, wanted.addressing)
  return { file: { path: first.file.path, text: first.document.toString({ lineWidth: 0 }) } }
}

/** The name of a link in the YAML, which `match` and `set-name` may tell from that of the link. */
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
  readonly changed: TextFile
  /** Files of networkd that netplan has made, by their paths. */
  readonly before: ReadonlyMap<string, string>
  /** Those that it makes of the changed file. */
  readonly after: ReadonlyMap<string, string>
  /** cloud-init writes its file of netplan again at each boot unless it is told not to. */
  readonly hasCloudInit: boolean
}

/** Plans a change, by the files that netplan makes. */
export function planNetplan({ links }: NetworkReading, wanted: WantedChange, all: NetplanFiles): Planned {
  const { files, changed, before, after } = all
  const differing = [...new Set([...before.keys(), ...after.keys()])]
    .filter((path) => before.get(path) !== after.get(path))
    .sort()
  const was = files.find(({ path }) => path === changed.path)
  if (differing.length === 0) return { kind: 'unchanged' }
  const name = basename(changed.path)
  const trial = `/run/netplan/${name}`
  const content = (text: string | undefined): StateFile['content'] =>
    text === undefined ? 'absent' : { text }
  const file = (path: string, text: string | undefined, mode = 0o644): StateFile => ({
    path,
    mode,
    content: content(text),
  })
  // YAML may hold a password of Wi-Fi.
  const secret = 0o600
  const link = links.find((each) => each.name === wanted.name)
  const inForce = link?.owner.configured?.files[0] ?? ''
  const text = after.get(inForce)
  const touched = new Set([
    wanted.name,
    ...links.filter((each) => isOf(each, differing)).map((each) => each.name),
  ])
  const others = links.filter((each) => touched.has(each.name) && each.name !== wanted.name)
  const change: ChangeSet = {
    backend: 'netplan',
    links: [...touched],
    before: {
      files: [
        file(trial, was?.path === trial ? was.text : undefined, secret),
        ...differing.map((path) => file(path, before.get(path))),
      ],
      devices: [],
      up: [],
      expected: [link, ...others].flatMap(expectedNow),
    },
    after: {
      files: [file(trial, changed.text, secret), ...differing.map((path) => file(path, after.get(path)))],
      devices: [],
      up: [],
      expected: [
        ...(text === undefined
          ? []
          : expectedBy(wanted.name, networkConfiguration(parseUnit(text), []), true)),
        ...others.flatMap(expectedNow),
      ],
    },
    kept: [
      file(`/etc/netplan/${name}`, changed.text, secret),
      ...(all.hasCloudInit && name.includes('cloud-init')
        ? [file('/etc/cloud/cloud.cfg.d/99-disable-network-config.cfg', 'network: {config: disabled}\n')]
        : []),
    ],
    summary: summaryOf(wanted),
  }
  return { kind: 'change', change }
}

const isOf = ({ owner }: Link, paths: readonly string[]) =>
  (owner.configured?.files ?? []).some((path) => paths.includes(path))
