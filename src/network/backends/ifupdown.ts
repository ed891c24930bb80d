// A change of a link of ifupdown: its stanza of IPv4 with other options, in the file that holds it. A trial has all files as one, with which ifup and
// ifdown are called, so that no file is written before the change is confirmed. Only address, MTU and name servers are changed. Pure.

import type { ChangeSet, NetworkState } from '../change-set.ts'
import type { TextFile } from '../links/configuration.ts'
import type { NetworkReading } from '../links/links.ts'
import type { Addressing, WantedChange } from '../wanted.ts'
import {
  interfacesFile,
  isSource,
  parseInterfaces,
  stanzaConfiguration,
  startsStanza,
} from './interfaces-file.ts'
import { expectedBy, expectedNow, onlyAddressing, summaryOf, vlansOn, type Planned } from './planned.ts'

/** Plans a change of a link that ifupdown has. Whether it suits the host was judged by the pre-flight before. */
export function planIfupdown({ links, states }: NetworkReading, wanted: WantedChange): Planned {
  const link = links.find(({ name }) => name === wanted.name)
  const problems = onlyAddressing(wanted, link, 'ifupdown')
  if (problems.length > 0 || wanted.kind === 'delete') return { kind: 'refused', problems }
  const { files = [], state, interfaces } = states.ifupdown ?? {}
  const logical = state?.get(wanted.name) ?? wanted.name
  const stanza = interfaces?.stanzas.find(({ name, family }) => name === logical && family === 'inet')
  const refuse = (reason: string): Planned => ({ kind: 'refused', problems: [{ field: 'name', reason }] })
  if (link === undefined || stanza === undefined || logical !== wanted.name)
    return refuse(
      `${wanted.name} has no stanza "iface ${wanted.name} inet" of its own${logical === wanted.name ? '' : `, but a mapping to ${logical}`}; add one to ${interfacesFile}`,
    )
  if (!['static', 'dhcp', 'manual'].includes(stanza.method))
    return refuse(
      `${wanted.name} has the method ${stanza.method}, which is not changed here; change it in ${stanza.file}`,
    )
  const before = files.find(({ path }) => path === stanza.file)
  if (before === undefined) return refuse(`${wanted.name} is in ${stanza.file}, which cannot be read`)
  const text = changeStanza(before.text, wanted.name, wanted.addressing)
  if (text === before.text) return { kind: 'unchanged' }
  const after = files.map((file) => (file === before ? { ...file, text } : file))
  const configured = stanzaConfiguration(parseInterfaces(after), wanted.name)
  const above = vlansOn(link, links)
  const names = [link.name, ...above.map((each) => each.name)]
  const stateOf = (all: readonly TextFile[], expected: NetworkState['expected']): NetworkState => ({
    files: [{ path: interfacesFile, mode: 0o644, content: { text: flattened(all) } }],
    devices: [],
    up: names,
    expected,
  })
  const change: ChangeSet = {
    backend: 'ifupdown',
    links: names,
    before: stateOf(files, [link, ...above].flatMap(expectedNow)),
    after: stateOf(after, [
      ...(configured ? expectedBy(link.name, configured, true) : []),
      ...above.flatMap(expectedNow),
    ]),
    kept: [{ path: stanza.file, mode: 0o644, content: { text } }],
    summary: summaryOf(wanted),
  }
  return { kind: 'change', change }
}

/** All files as one, as ifupdown reads them, without the lines that name other files. */
const flattened = (files: readonly TextFile[]): string =>
  `${files
    .map(({ text }) =>
      text
        .split('\n')
        .filter((line) => !isSource(line))
        .join('\n')
        .trimEnd(),
    )
    .join('\n\n')}\n`

/** Options of the address, of which the broadcast address follows from it. */
const ofAddress = ['address', 'netmask', 'broadcast', 'network', 'gateway']

// ifupdown has no option for the MTU of a link with DHCP.
const mtuCommand = (mtu: number) => `pre-up ip link set dev $IFACE mtu ${mtu}`
const isMtuCommand = (line: string) =>
  /^\s*pre-up\s+ip\s+link\s+set\s+dev\s+\$IFACE\s+mtu\s+\d+\s*$/.test(line)

/** Changes IPv4, MTU and name servers in the first stanza `iface NAME inet`, and the name servers in the others of the link. */
export function changeStanza(text: string, name: string, addressing: Addressing): string {
  const lines = text.split('\n')
  let isChanged = false
  const result: string[] = []
  for (let at = 0; at < lines.length;) {
    const line = lines[at] ?? ''
    const [keyword, link, family, ...rest] = line.trim().split(/\s+/)
    if (keyword !== 'iface' || link !== name) {
      result.push(line)
      at += 1
      continue
    }
    let end = at + 1
    while (end < lines.length && !startsStanza((lines[end] ?? '').trim().split(/\s+/)[0] ?? '')) end += 1
    const body = lines.slice(at + 1, end)
    if (family === 'inet' && !isChanged) {
      isChanged = true
      const method = { static: 'static', dhcp: 'dhcp', none: 'manual' }[addressing.type]
      const head = `iface ${name} inet ${[method, ...rest.slice(1)].join(' ')}`
      result.push(line.trim() === head ? line : head, ...changeOptions(body, addressing))
    } else
      result.push(line, ...(addressing.nameservers === undefined ? body : without(body, ['dns-nameservers'])))
    at = end
  }
  return result.join('\n')
}

/** A line that a backslash continues is not taken apart: the lines after it go with it. */
function without(body: readonly string[], keys: readonly string[]): string[] {
  const kept: string[] = []
  let isGoing = false
  for (const [index, line] of body.entries()) {
    const isContinued = body[index - 1]?.endsWith('\\') === true
    if (!isContinued) isGoing = keys.includes((line.trim().split(/\s+/)[0] ?? '').replaceAll('_', '-'))
    if (!isGoing) kept.push(line)
  }
  return kept
}

function changeOptions(body: readonly string[], addressing: Addressing): readonly string[] {
  const { type, address, gateway, mtu, nameservers } = addressing
  const indent = /^\s+/.exec(body.find((line) => line.trim() !== '') ?? '')?.[0] ?? '    '
  const isCommand = body.some(isMtuCommand)
  const given = body
    .map(
      (line) =>
        /^\s*mtu\s+(\d+)/.exec(line)?.[1] ?? (isMtuCommand(line) ? /\d+\s*$/.exec(line)?.[0] : undefined),
    )
    .find(Boolean)
  const size = mtu ?? (given === undefined ? undefined : Number(given))
  const rest = without(body, [
    ...ofAddress,
    'mtu',
    ...(nameservers === undefined ? [] : ['dns-nameservers']),
  ]).filter((line) => !isMtuCommand(line))
  const added = [
    ...(type === 'static' && address !== undefined ? [`address ${address}`] : []),
    ...(type === 'static' && gateway !== undefined ? [`gateway ${gateway}`] : []),
    ...(size === undefined ? [] : [type === 'dhcp' || isCommand ? mtuCommand(size) : `mtu ${size}`]),
    ...(nameservers === undefined || nameservers.length === 0
      ? []
      : [`dns-nameservers ${nameservers.join(' ')}`]),
  ].map((line) => `${indent}${line}`)
  return [...added, ...rest]
}
