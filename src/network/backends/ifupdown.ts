// A change of links of ifupdown: their stanzas with other options, in the file that holds them. A trial has all files as one, with which ifup and
// ifdown are called, so that no file is written before the change is confirmed. A link that edgehostd makes has a stanza below a comment that says so,
// in /etc/network/interfaces; the lines of its members stay where they are as comments that name it. Pure.

import type { ChangeSet, ExpectedLink, NetworkState } from '../change-set.ts'
import type { TextFile } from '../links/configuration.ts'
import type { Link, NetworkReading } from '../links/links.ts'
import type { Addressing, Problem, WantedChange } from '../wanted.ts'
import {
  interfacesFile,
  isSource,
  parseInterfaces,
  stanzaConfiguration,
  startsStanza,
} from './interfaces-file.ts'
import {
  bondOptionsOf,
  createDevices,
  expectedAfter,
  expectedNow,
  macFor,
  membersOf,
  notMadeHere,
  summaryOf,
  vlansOn,
  type Planned,
} from './planned.ts'

/** Plans a change of links that ifupdown has. Whether it suits the host was judged by the pre-flight before. */
export function planIfupdown(reading: NetworkReading, wanted: WantedChange): Planned {
  const plan = createPlan(reading)
  if (wanted.kind === 'nic') changeLink(plan, wanted.name, wanted.addressing)
  else if (wanted.kind === 'vlan') planVlan(plan, wanted)
  else if (wanted.kind === 'delete') planDeletion(plan, wanted.name)
  else planMaster(plan, wanted)
  return plan.end(wanted)
}

interface Plan {
  readonly link: (name: string) => Link | undefined
  /** Changes the text of each file. */
  edit(change: (text: string, path: string) => string): void
  /** The text of all files together. */
  text(): string
  /** Links to bring up in a state, in this order. */
  up(state: 'before' | 'after', names: readonly string[]): void
  touch(names: readonly string[]): void
  device(name: string, isBefore: boolean, isAfter: boolean): void
  refuse(problem: Problem): void
  stanzaOf(name: string): { readonly file: string; readonly method: string } | undefined
  /** The name of the stanza by which a link is up. */
  logicalOf(name: string): string
  end(wanted: WantedChange): Planned
}

function createPlan({ links, states }: NetworkReading): Plan {
  const { files = [], state, interfaces } = states.ifupdown ?? {}
  let after: readonly TextFile[] = files
  const touched = new Set<string>()
  const ups = { before: new Set<string>(), after: new Set<string>() }
  const devices = createDevices()
  const problems: Problem[] = []
  const link = (name: string) => links.find((each) => each.name === name)

  return {
    link,
    edit(change) {
      after = after.map((file) => ({ ...file, text: change(file.text, file.path) }))
    },
    text: () => flattened(after),
    up: (of, names) => names.forEach((name) => ups[of].add(name)),
    touch: (names) => names.forEach((name) => touched.add(name)),
    device: devices.note,
    refuse: (problem) => void problems.push(problem),
    stanzaOf: (name) =>
      interfaces?.stanzas.find((stanza) => stanza.name === name && stanza.family === 'inet'),
    logicalOf: (name) => state?.get(name) ?? name,
    end(wanted) {
      if (problems.length > 0) return { kind: 'refused', problems }
      const changed = after.filter((file, index) => file.text !== files[index]?.text)
      if (changed.length === 0) return { kind: 'unchanged' }
      const names = [...touched]
      const above = names.flatMap((name) => {
        const own = link(name)
        return own === undefined ? [] : vlansOn(own, links).filter((each) => !touched.has(each.name))
      })
      const parsed = parseInterfaces(after)
      const stateOf = (
        of: 'before' | 'after',
        all: readonly TextFile[],
        expected: readonly ExpectedLink[],
      ): NetworkState => ({
        files: [{ path: interfacesFile, mode: 0o644, content: { text: flattened(all) } }],
        devices: [...devices[of]],
        up: [...ups[of], ...above.map((each) => each.name)],
        expected,
      })
      const change: ChangeSet = {
        backend: 'ifupdown',
        links: [...names, ...above.map((each) => each.name)],
        before: stateOf('before', files, [...names.map(link), ...above].flatMap(expectedNow)),
        after: stateOf('after', after, [
          ...names.flatMap((name) =>
            expectedAfter(wanted, name, link(name), stanzaConfiguration(parsed, name)),
          ),
          ...above.flatMap(expectedNow),
        ]),
        kept: changed.map(({ path, text }) => ({ path, mode: 0o644, content: { text } })),
        summary: summaryOf(wanted),
      }
      return { kind: 'change', change }
    },
  }
}

/** Another address, MTU or name server of a link that has a stanza. */
function changeLink(plan: Plan, name: string, addressing: Addressing): void {
  const refuse = (reason: string) => plan.refuse({ field: 'name', reason })
  const logical = plan.logicalOf(name)
  const stanza = plan.stanzaOf(name)
  if (plan.link(name) === undefined || stanza === undefined || logical !== name) {
    refuse(
      `${name} has no stanza "iface ${name} inet" of its own${logical === name ? '' : `, but a mapping to ${logical}`}; add one to ${interfacesFile}`,
    )
    return
  }
  if (!['static', 'dhcp', 'manual'].includes(stanza.method)) {
    refuse(`${name} has the method ${stanza.method}, which is not changed here; change it in ${stanza.file}`)
    return
  }
  plan.edit((text, path) => (path === stanza.file ? changeStanza(text, name, addressing) : text))
  plan.touch([name])
  plan.up('before', [name])
  plan.up('after', [name])
}

const headOf = (name: string) => `# Made by edgehostd: ${name}`
const formerOf = (name: string) => `#edgehostd ${name}: `

function planVlan(plan: Plan, wanted: WantedChange & { kind: 'vlan' }): void {
  const { name, addressing, parent } = wanted
  if (plan.link(name) !== undefined) {
    changeLink(plan, name, addressing)
    return
  }
  make(plan, name, `iface ${name} inet manual\n    vlan-raw-device ${parent}\n`, addressing)
}

/** Adds a link at the end of the first file, which ifupdown reads last where it names the others at its head. */
function make(plan: Plan, name: string, stanzas: string, addressing: Addressing): void {
  const text = changeStanza(stanzas, name, addressing)
  plan.edit((all, path) =>
    path === interfacesFile ? `${all.trimEnd()}\n\n${headOf(name)}\nauto ${name}\n${text.trimEnd()}\n` : all,
  )
  plan.touch([name])
  plan.device(name, false, true)
  plan.up('after', [name])
}

function planMaster(plan: Plan, wanted: WantedChange & { kind: 'bond' | 'bridge' }): void {
  const { name, kind, addressing, members } = wanted
  const { existing, all, joining, released, from } = membersOf(plan.link, wanted)
  const mapped = joining.find((member) => plan.logicalOf(member.name) !== member.name)
  if (mapped !== undefined) {
    plan.refuse({
      field: `members[${members.indexOf(mapped.name)}]`,
      reason: `${mapped.name} has no stanza of its own, but a mapping to ${plan.logicalOf(mapped.name)}`,
    })
    return
  }
  const isNew = existing === undefined
  const ports = members.join(' ') || 'none'
  const { mode, miimon, lacpRate, hashPolicy } =
    wanted.kind === 'bond' ? bondOptionsOf(wanted.options, isNew) : {}
  const isStpOn = wanted.kind === 'bridge' ? (wanted.isStpOn ?? (isNew ? false : undefined)) : undefined
  const mac = isNew ? macFor(all, from) : undefined
  const options: Readonly<Record<string, string | undefined>> =
    kind === 'bond'
      ? {
          'bond-slaves': ports,
          'bond-mode': mode,
          'bond-miimon': miimon?.toString(),
          'bond-lacp-rate': lacpRate,
          'bond-xmit-hash-policy': hashPolicy,
        }
      : {
          'bridge-ports': ports,
          'bridge-stp': isStpOn === undefined ? undefined : isStpOn ? 'on' : 'off',
          // Without STP no port has to wait for what others say.
          'bridge-fd': isStpOn === false ? '0' : undefined,
          'bridge-hw': mac,
        }
  if (isNew) {
    // IPv6, routes and commands of the member come along with its address.
    const taken = from === undefined ? '' : stanzasOf(plan.text(), from.name, name)
    const stanzas = /^iface \S+ inet /m.test(taken) ? taken : `iface ${name} inet manual\n${taken}`
    make(plan, name, changeOptionsOf(stanzas, name, options), addressing)
  } else {
    if (plan.stanzaOf(name) === undefined) {
      changeLink(plan, name, addressing)
      return
    }
    plan.edit((text) => changeOptionsOf(text, name, options))
    changeLink(plan, name, addressing)
    if (joining.length > 0 || released.length > 0) plan.device(name, true, true)
  }
  for (const member of joining) {
    plan.edit((text) => hide(text, member.name, name))
    plan.touch([member.name])
    if (member.owner.backend !== undefined) plan.up('before', [member.name])
  }
  release(plan, name, released)
}

/** Links that are no members any more have the lines that they had before. */
function release(plan: Plan, master: string, members: readonly string[]): void {
  for (const member of members) plan.edit((text) => reveal(text, master, member))
  plan.touch(members)
  plan.up(
    'after',
    members.filter((member) => new RegExp(`^iface ${escaped(member)} `, 'm').test(plan.text())),
  )
}

function planDeletion(plan: Plan, name: string): void {
  const link = plan.link(name)
  const isOurs = plan.text().split('\n').includes(headOf(name))
  if (link === undefined || !isOurs) {
    plan.refuse(notMadeHere(name, plan.stanzaOf(name)?.file))
    return
  }
  plan.touch([name])
  plan.up('before', [name])
  plan.device(name, true, false)
  plan.edit((text) => withoutMade(text, name))
  release(plan, name, link.members)
}

const escaped = (name: string) => name.replace(/[.]/g, '\\.')

/** The lines of a file, each with the link whose stanza it belongs to. */
function ownersOf(text: string): readonly { readonly line: string; readonly owner: string | undefined }[] {
  let owner: string | undefined
  return text.split('\n').map((line) => {
    const [keyword = '', name] = line.trim().split(/\s+/)
    if (keyword === 'iface') owner = name
    else if (startsStanza(keyword) || line.startsWith('# Made by edgehostd: ')) owner = undefined
    return { line, owner }
  })
}

/** The stanzas of a link with another name, without the settings of its own hardware. */
const stanzasOf = (text: string, link: string, name: string): string =>
  ownersOf(text)
    .filter(({ line, owner }) => owner === link && line.trim() !== '' && !line.trim().startsWith('#'))
    .map(({ line }) => line.replace(/^(\s*iface\s+)\S+/, `$1${name}`))
    .filter((line) => !/^\s*(mtu|hwaddress)\s/.test(line) && !isMtuCommand(line))
    .map((line) => `${line}\n`)
    .join('')

/** Has the lines of a link as comments; of a line `auto eth0 eth1` only its own name goes. */
function hide(text: string, link: string, master: string): string {
  const former = formerOf(master)
  return ownersOf(text)
    .flatMap(({ line, owner }) => {
      if (owner === link) return line.trim() === '' ? [line] : [`${former}${line}`]
      const [keyword = '', ...names] = line.trim().split(/\s+/)
      if (!/^(auto|allow-\S+)$/.test(keyword) || !names.includes(link)) return [line]
      const others = names.filter((each) => each !== link)
      return [
        `${former}${keyword} ${link}`,
        ...(others.length === 0 ? [] : [`${keyword} ${others.join(' ')}`]),
      ]
    })
    .join('\n')
}

/** Takes back what `hide` did. */
function reveal(text: string, master: string, link: string): string {
  const former = formerOf(master)
  let isOfLink = false
  return text
    .split('\n')
    .map((line) => {
      if (!line.startsWith(former)) return line
      const own = line.slice(former.length)
      const [keyword = '', name] = own.trim().split(/\s+/)
      if (startsStanza(keyword)) isOfLink = name === link
      return isOfLink ? own : line
    })
    .join('\n')
}

/** Takes out what we made: from its comment to the next stanza of another link. */
function withoutMade(text: string, name: string): string {
  const lines = text.split('\n')
  const start = lines.indexOf(headOf(name))
  if (start < 0) return text
  const owned = ownersOf(text)
  let end = start + 1
  while (end < lines.length) {
    const { line = '', owner } = owned[end] ?? {}
    const isAuto = line.trim() === `auto ${name}`
    // A comment of the administrator belongs to what comes after it.
    if (line.startsWith('#') || (!isAuto && owner !== name)) break
    end += 1
  }
  return `${[...lines.slice(0, start), ...lines.slice(end)].join('\n').trimEnd()}\n`
}

/** Sets options of the first stanza of IPv4 of a link; an undefined one stays as it is. */
function changeOptionsOf(
  text: string,
  name: string,
  options: Readonly<Record<string, string | undefined>>,
): string {
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  const keys = given.flatMap(([key]) => (key === 'bond-slaves' ? [key, 'slaves'] : key))
  return changeBody(text, name, (body, isFirst) =>
    isFirst
      ? [...given.map(([key, value]) => `    ${key} ${value ?? ''}`), ...without(body, keys)]
      : [...body],
  )
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

/** Runs over the stanzas of a link: the first of IPv4, and the others. */
function changeBody(
  text: string,
  name: string,
  change: (body: readonly string[], isFirst: boolean) => readonly string[],
  changeHead: (line: string, rest: readonly string[]) => string = (line) => line,
): string {
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
    const isFirst: boolean = family === 'inet' && !isChanged
    isChanged ||= isFirst
    result.push(isFirst ? changeHead(line, rest) : line, ...change(body, isFirst))
    at = end
  }
  return result.join('\n')
}

/** Changes IPv4, MTU and name servers in the first stanza `iface NAME inet`, and the name servers in the others of the link. */
export function changeStanza(text: string, name: string, addressing: Addressing): string {
  const method = { static: 'static', dhcp: 'dhcp', none: 'manual' }[addressing.type]
  return changeBody(
    text,
    name,
    (body, isFirst) =>
      isFirst
        ? changeOptions(body, addressing)
        : addressing.nameservers === undefined
          ? body
          : without(body, ['dns-nameservers']),
    (line, rest) => {
      const head = `iface ${name} inet ${[method, ...rest.slice(1)].join(' ')}`
      return line.trim() === head ? line : head
    },
  )
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
