// A change of links of systemd-networkd as the two states of a ChangeSet. Our files are named 05-edgehostd-LINK, so that they come before the files of an
// administrator, which stay as they are. They are kept in /usr/local/lib, below /run in rank: a trial has the same names in /run, and takes a kept file
// away by a mask there. Pure.

import { basename } from 'node:path'
import type { StateFile } from '../change-set.ts'
import type { Link, NetworkReading } from '../links/links.ts'
import type { Problem, WantedBond, WantedChange } from '../wanted.ts'
import {
  createDevices,
  expectedAfter,
  expectedNow,
  macFor,
  membersOf,
  notMadeHere,
  summaryOf,
  type Planned,
} from './planned.ts'
import {
  changeAddressing,
  changeVlan,
  deviceUnit,
  emptyUnit,
  formatUnit,
  forLink,
  memberUnit,
  networkConfiguration,
  parseUnit,
  setValues,
  withIaid,
  type Unit,
} from './networkd-files.ts'
import { deviceFile, fileInForce, filesInForce, type NetworkdFiles } from './networkd-folders.ts'

const trialFolder = '/run/systemd/network'
const keptFolder = '/usr/local/lib/systemd/network'
const prefix = '05-edgehostd-'

const fileName = (link: string, extension: 'network' | 'netdev') => `${prefix}${link}.${extension}`
const isOurs = (path: string) => basename(path).startsWith(prefix)

/**
 * Plans a change. Whether it suits the host was judged by the pre-flight before.
 * @param reading of a host where networkd runs
 */
export function planNetworkd(reading: NetworkReading, wanted: WantedChange): Planned {
  const plan = createPlan(reading)
  if (wanted.kind === 'nic') planNic(plan, wanted)
  else if (wanted.kind === 'vlan') planVlan(plan, wanted)
  else if (wanted.kind === 'delete') planDeletion(plan, wanted)
  else planMaster(plan, wanted)
  return plan.end(wanted)
}

interface Plan {
  readonly link: (name: string) => Link | undefined
  readonly files: NetworkdFiles
  readonly iaidOf: (name: string) => number | undefined
  /** The file in force of a link, for this link alone; undefined where it has none. */
  carried(name: string): Unit | undefined
  /** What its file would be without ours; undefined where that is not known. */
  original(name: string): Unit | undefined
  put(name: string, extension: 'network' | 'netdev', unit: Unit): void
  remove(name: string, extension: 'network' | 'netdev'): void
  /** The device is made anew, or is there in one of the states only. */
  device(name: string, isBefore: boolean, isAfter: boolean): void
  /** The link changes, and its file does not. */
  touch(name: string): void
  refuse(field: string, reason: string): void
  end(wanted: WantedChange): Planned
}

function createPlan({ links, states }: NetworkReading): Plan {
  const files: NetworkdFiles = states.networkd?.files ?? new Map()
  const after = new Map<string, Unit | undefined>()
  const touched = new Set<string>()
  const devices = createDevices()
  const problems: Problem[] = []
  const link = (name: string) => links.find((each) => each.name === name)
  const fileOf = (name: string) => states.networkd?.links.find((each) => each.name === name)?.file

  const textIn = (file: ReturnType<NetworkdFiles['get']>) => (file === 'masked' ? undefined : file?.text)
  /** The text of a file where it is one of ours, and not masked. */
  const textOfOurs = (path: string | undefined) =>
    path !== undefined && isOurs(path) ? textIn(files.get(path)) : undefined

  /** Networkd would not look at a file of ours that comes later, or that one in /etc replaces. */
  function checkPlace(name: string, own: string): void {
    const given = `/etc/systemd/network/${own}`
    if (files.has(given))
      problems.push({
        field: 'name',
        reason: `${name} has the file ${given}, which replaces ours; remove it first`,
      })
    const inForce = own.endsWith('.network') ? fileOf(name) : deviceFile(files, name)?.file
    if (inForce === undefined || isOurs(inForce)) return
    const other = basename(inForce)
    if (other < own)
      problems.push({
        field: 'name',
        reason: `${name} is configured in ${inForce}, whose name comes before ours, ${own}; rename it so that it begins with 10-`,
      })
  }

  const plan: Plan = {
    link,
    files,
    iaidOf: (name) => states.networkd?.iaids.get(link(name)?.index ?? 0),
    carried(name) {
      const path = fileOf(name)
      if (path === undefined) return undefined
      // Drop-ins of a file of ours stay in force beside it.
      const ours = textOfOurs(path)
      if (ours !== undefined) return forLink(parseUnit(ours), name)
      const found = fileInForce(files, path)
      return found && forLink(found.unit, name)
    },
    original(name) {
      const ours = textOfOurs(fileOf(name))
      const origin = ours === undefined ? undefined : originOf(ours)
      const found = origin === undefined ? undefined : fileInForce(files, origin)
      return found && forLink(found.unit, name)
    },
    put(name, extension, unit) {
      const own = fileName(name, extension)
      checkPlace(name, own)
      touched.add(name)
      after.set(own, unit)
    },
    remove(name, extension) {
      touched.add(name)
      after.set(fileName(name, extension), undefined)
    },
    device: devices.note,
    touch: (name) => void touched.add(name),
    refuse: (field, reason) => void problems.push({ field, reason }),
    end(wanted) {
      if (problems.length > 0) return { kind: 'refused', problems }
      const names = [...after.keys()]
      const texts = new Map(names.map((own) => [own, textOf(own, after.get(own))]))
      const present = (folder: string, own: string): StateFile['content'] =>
        files.get(`${folder}/${own}`) ?? 'absent'
      const isChanged = names.some((own) => {
        const inForce = files.get(`${trialFolder}/${own}`) ?? files.get(`${keptFolder}/${own}`)
        return textIn(inForce) !== texts.get(own)
      })
      if (!isChanged) return { kind: 'unchanged' }
      const file = (folder: string, own: string, content: StateFile['content']): StateFile => ({
        path: `${folder}/${own}`,
        mode: 0o644,
        content,
      })
      const afterOf = (own: string, without: 'masked' | 'absent'): StateFile['content'] => {
        const text = texts.get(own)
        return text === undefined ? without : { text }
      }
      return {
        kind: 'change',
        change: {
          backend: 'networkd',
          links: [...touched],
          before: {
            files: names.map((own) => file(trialFolder, own, present(trialFolder, own))),
            devices: [...devices.before],
            up: [],
            expected: [...touched].flatMap((name) => expectedNow(link(name))),
          },
          after: {
            files: names.map((own) => file(trialFolder, own, afterOf(own, 'masked'))),
            devices: [...devices.after],
            up: [],
            expected: [...touched].flatMap((name) =>
              expectedAfter(wanted, name, link(name), configuredAfter(name)),
            ),
          },
          kept: names.map((own) => file(keptFolder, own, afterOf(own, 'absent'))),
          summary: summaryOf(wanted),
        },
      }
    },
  }

  /** By the file that a link has then. */
  function configuredAfter(name: string) {
    const own = fileName(name, 'network')
    const unit = after.has(own) ? (after.get(own) ?? plan.original(name)) : undefined
    return unit && networkConfiguration(unit, [])
  }

  function textOf(own: string, unit: Unit | undefined): string | undefined {
    if (unit === undefined) return undefined
    const name = own.slice(prefix.length).replace(/\.(network|netdev)$/, '')
    const inForce = own.endsWith('.network') ? fileOf(name) : deviceFile(files, name)?.file
    const ours = textOfOurs(inForce)
    // The first file that was carried over is named also after several changes.
    const origin = ours === undefined ? inForce : originOf(ours)
    return `${head(name, origin)}\n${formatUnit(unit)}`
  }
  return plan
}

const head = (name: string, origin: string | undefined) =>
  [
    `# Written by edgehostd for ${name}; it is changed with edgehostctl network.`,
    ...(origin === undefined ? [] : [`# Carried over from: ${origin}`]),
    '',
  ].join('\n')

const originOf = (text: string): string | undefined => /^# Carried over from: (\S+)$/m.exec(text)?.[1]

function planNic(plan: Plan, { name, addressing }: WantedChange & { kind: 'nic' }): void {
  const unit = plan.carried(name) ?? forLink([], name)
  plan.put(name, 'network', changeAddressing(unit, addressing))
}

function planVlan(plan: Plan, wanted: WantedChange & { kind: 'vlan' }): void {
  const { name, addressing, parent, id } = wanted
  plan.put(name, 'network', changeAddressing(plan.carried(name) ?? forLink([], name), addressing))
  if (plan.link(name) !== undefined) return
  plan.put(name, 'netdev', deviceUnit({ name, kind: 'vlan', options: { Id: String(id) } }))
  plan.device(name, false, true)
  // A parent without a configuration is only set up, and gets no address.
  plan.put(parent, 'network', changeVlan(plan.carried(parent) ?? emptyUnit(parent), name, true))
}

function planMaster(plan: Plan, wanted: WantedChange & { kind: 'bond' | 'bridge' }): void {
  const { name, kind, addressing } = wanted
  const { all, joining, released, from } = membersOf(plan.link, wanted)
  // IPv6, routes and DHCP options of the member come along with its address.
  const inherited = from && plan.carried(from.name)
  const base =
    plan.carried(name) ??
    (inherited &&
      withoutMaster(
        forLink(
          inherited.filter(({ name: section }) => section !== 'Link'),
          name,
        ),
      )) ??
    (addressing.type === 'none' ? emptyUnit(name) : forLink([], name))
  let unit = changeAddressing(base, addressing)
  const iaid = from === undefined ? undefined : plan.iaidOf(from.name)
  if (addressing.type === 'dhcp' && iaid !== undefined) unit = withIaid(unit, iaid)
  plan.put(name, 'network', unit)

  const before = deviceFile(plan.files, name)
  const options =
    wanted.kind === 'bond' ? bondLines(wanted.options, before === undefined) : bridgeLines(wanted)
  const section = kind === 'bond' ? 'Bond' : 'Bridge'
  const mac = macFor(all, from)
  const device = before
    ? Object.entries(options).reduce(
        (all, [key, value]) => (value === undefined ? all : setValues(all, section, key, [value])),
        before.unit,
      )
    : deviceUnit({ name, kind, ...(mac === undefined ? {} : { mac }), options })
  // networkd does not change options of a device that is there, so it is made anew.
  if (before === undefined || formatUnit(device) !== formatUnit(before.unit)) {
    plan.put(name, 'netdev', device)
    plan.device(name, before !== undefined, true)
    // Those that stay lose it, and join the new one.
    if (before !== undefined) for (const { name: member } of all) plan.touch(member)
  }
  for (const member of joining)
    plan.put(member.name, 'network', memberUnit(plan.carried(member.name) ?? [], member.name, kind, name))
  for (const member of released) release(plan, member)
}

const withoutMaster = (unit: Unit): Unit =>
  ['Bond', 'Bridge'].reduce((all, key) => setValues(all, 'Network', key, []), unit)

/** A link that is no member any more gets back the configuration of its administrator's file, or none. */
function release(plan: Plan, name: string): void {
  const unit = plan.carried(name)
  const original = plan.original(name)
  const fileOf = plan.link(name)?.owner.configured?.files[0]
  if (fileOf !== undefined && isOurs(fileOf) && (original === undefined || !hasMaster(original)))
    plan.remove(name, 'network')
  else if (unit !== undefined) plan.put(name, 'network', withoutMaster(original ?? unit))
}

const hasMaster = (unit: Unit) =>
  unit.some(
    ({ name, lines }) => name === 'Network' && lines.some(({ key }) => key === 'Bond' || key === 'Bridge'),
  )

/** Options of a new bond that no request names: no switch has to be set up for them, and a pulled cable is noticed. */
const bondLines = (options: WantedBond, isNew: boolean): Record<string, string | undefined> => ({
  Mode: options.mode ?? (isNew ? 'active-backup' : undefined),
  MIIMonitorSec: options.miiMonitorSec ?? (isNew ? '0.1' : undefined),
  LACPTransmitRate: options.lacpTransmitRate,
  TransmitHashPolicy: options.transmitHashPolicy,
})

const bridgeLines = ({ isStpOn }: { readonly isStpOn?: boolean }): Record<string, string | undefined> => ({
  STP: isStpOn === undefined ? undefined : isStpOn ? 'yes' : 'no',
})

function planDeletion(plan: Plan, { name, of }: WantedChange & { kind: 'delete' }): void {
  const link = plan.link(name)
  if (!isMadeHere(plan.files, name)) {
    const { field, reason } = notMadeHere(name, deviceFile(plan.files, name)?.file)
    plan.refuse(field, reason)
    return
  }
  plan.remove(name, 'network')
  plan.remove(name, 'netdev')
  plan.device(name, true, false)
  for (const member of link?.members ?? []) release(plan, member)
  const parent = link?.vlan?.parent
  if (of !== 'vlan' || parent === undefined) return
  const unit = plan.carried(parent)
  if (unit === undefined) return
  const without = changeVlan(unit, name, false)
  const original = plan.original(parent)
  const isSame = (other: Unit) => formatUnit(without) === formatUnit(changeVlan(other, name, false))
  // A file that says no more than the one that it was made from, or nothing, is not needed any more.
  if (isSame(original ?? emptyUnit(parent))) plan.remove(parent, 'network')
  else plan.put(parent, 'network', without)
}

/** Whether we made a device: ours is its only .netdev file. */
function isMadeHere(files: NetworkdFiles, name: string): boolean {
  const making = filesInForce(files, 'netdev').filter(({ unit }) =>
    unit.some(
      (section) =>
        section.name === 'NetDev' && section.lines.some(({ key, value }) => key === 'Name' && value === name),
    ),
  )
  return making.length === 1 && making.every(({ path }) => isOurs(path))
}
