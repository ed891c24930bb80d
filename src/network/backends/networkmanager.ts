// A change of links of NetworkManager as the two states of a ChangeSet: their profiles, keyfiles, with other values. In a trial a file lies in /run, where
// it wins over the kept one with the same UUID; a profile without `uuid=` has one that is made from its path, so that it is written into both. A kept
// profile that a trial takes away is hidden there by a link UUID.nmmeta to /dev/null. What edgehostd makes is named edgehostd-LINK. Pure.

import { basename } from 'node:path'
import type { StateFile } from '../change-set.ts'
import type { Link, NetworkReading } from '../links/links.ts'
import type { Problem, WantedChange } from '../wanted.ts'
import { parseKeyfile, profileConfiguration } from './keyfile.ts'
import {
  addressGroups,
  changeBond,
  changeProfile,
  memberProfile,
  newProfile,
  releasedProfile,
  setKey,
  uuidFor,
  withUuid,
} from './networkmanager-files.ts'
import {
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

const trialFolder = '/run/NetworkManager/system-connections'
const keptFolder = '/etc/NetworkManager/system-connections'
const ourFile = (name: string) => `edgehostd-${name}.nmconnection`

/** Plans a change of links that NetworkManager has. Whether it suits the host was judged by the pre-flight before. */
export function planNetworkManager(reading: NetworkReading, wanted: WantedChange): Planned {
  const plan = createPlan(reading)
  if (wanted.kind === 'nic') planNic(plan, wanted)
  else if (wanted.kind === 'vlan') planVlan(plan, wanted)
  else if (wanted.kind === 'delete') planDeletion(plan, wanted.name)
  else planMaster(plan, wanted)
  return plan.end(wanted)
}

/** The profile of a link before and after the change. */
interface Edited {
  /** Of both folders. */
  readonly file: string
  readonly uuid: string
  readonly before: string | undefined
  readonly isTrial: boolean
  after: string | undefined
}

interface Plan {
  readonly link: (name: string) => Link | undefined
  /** The profile of a link now, with its UUID in it. */
  text(name: string): string | undefined
  put(name: string, text: string): void
  remove(name: string): void
  /** Links to bring up in a state, in this order. */
  up(state: 'before' | 'after', names: readonly string[]): void
  /** The device is made anew, or is there in one of the states only. */
  device(name: string, isBefore: boolean, isAfter: boolean): void
  refuse(problem: Problem): void
  end(wanted: WantedChange): Planned
}

function createPlan({ links, states }: NetworkReading): Plan {
  const edited = new Map<string, Edited>()
  const ups = { before: new Set<string>(), after: new Set<string>() }
  const devices = createDevices()
  const problems: Problem[] = []
  const link = (name: string) => links.find((each) => each.name === name)
  const textOf = (name: string) => {
    const profile = link(name)?.owner.profile
    return profile && states.networkManager?.texts.get(profile.path)
  }

  function edit(name: string, after: string | undefined): void {
    const profile = link(name)?.owner.profile
    edited.set(name, {
      file: profile ? basename(profile.path) : ourFile(name),
      uuid: profile?.uuid ?? uuidFor(name),
      before: textOf(name),
      isTrial: profile?.path.startsWith(`${trialFolder}/`) === true,
      after,
    })
  }

  const uuidOf = (name: string) => edited.get(name)?.uuid ?? link(name)?.owner.profile?.uuid
  /** Of a profile that is there in a state; a link without a cable cannot be brought up. */
  const connections = (state: 'before' | 'after') =>
    [...ups[state]].flatMap((name) => {
      const own = edited.get(name)
      if (own !== undefined && own[state] === undefined) return []
      if (link(name)?.hasCarrier === false) return []
      return uuidOf(name) ?? []
    })

  return {
    link,
    text(name) {
      const text = textOf(name)
      const uuid = link(name)?.owner.profile?.uuid
      return text === undefined || uuid === undefined ? undefined : withUuid(text, uuid)
    },
    put: edit,
    remove: (name) => edit(name, undefined),
    up: (state, names) => names.forEach((name) => ups[state].add(name)),
    device: devices.note,
    refuse: (problem) => void problems.push(problem),
    end(wanted) {
      if (problems.length > 0) return { kind: 'refused', problems }
      const all = [...edited]
      if (all.every(([, { before, after }]) => before === after)) return { kind: 'unchanged' }
      const file = (folder: string, name: string, content: StateFile['content']): StateFile => ({
        path: `${folder}/${name}`,
        // It may hold a password of Wi-Fi; NetworkManager refuses one that others can read.
        mode: 0o600,
        content,
      })
      const textFile = (folder: string, name: string, text: string | undefined) =>
        file(folder, name, text === undefined ? 'absent' : { text })
      // A file that a former trial has left would hide the new one.
      const hiding = all.filter(([, { before, after }]) => before === undefined || after === undefined)
      const above = all.flatMap(([name]) => {
        const own = link(name)
        return own === undefined ? [] : vlansOn(own, links).filter((each) => !edited.has(each.name))
      })
      const upAbove = above.map(({ name }) => name)
      this.up('before', upAbove)
      this.up('after', upAbove)
      return {
        kind: 'change',
        change: {
          backend: 'networkmanager',
          links: [...all.map(([name]) => name), ...upAbove],
          before: {
            files: [
              ...all.map(([, { file: name, isTrial, before }]) =>
                textFile(trialFolder, name, isTrial ? before : undefined),
              ),
              ...hiding.map(([, { uuid }]) => file(trialFolder, `${uuid}.nmmeta`, 'absent')),
            ],
            devices: [...devices.before],
            up: connections('before'),
            expected: [...all.map(([name]) => link(name)), ...above].flatMap(expectedNow),
          },
          after: {
            files: [
              ...all.map(([, { file: name, after }]) => textFile(trialFolder, name, after)),
              ...hiding.map(([, { uuid, after }]) =>
                file(trialFolder, `${uuid}.nmmeta`, after === undefined ? 'masked' : 'absent'),
              ),
            ],
            devices: [...devices.after],
            up: connections('after'),
            expected: [
              ...all.flatMap(([name, { after, file: path }]) =>
                expectedAfter(
                  wanted,
                  name,
                  link(name),
                  after === undefined ? undefined : profileConfiguration(parseKeyfile(after), path),
                ),
              ),
              ...above.flatMap(expectedNow),
            ],
          },
          kept: all.map(([, { file: name, after }]) => textFile(keptFolder, name, after)),
          summary: summaryOf(wanted),
        },
      }
    },
  }
}

const withoutProfile = (name: string): Problem => ({
  field: 'name',
  reason: `${name} has no profile that can be read; see nmcli connection`,
})

function planNic(plan: Plan, { name, addressing }: WantedChange & { kind: 'nic' }): void {
  const text = plan.text(name)
  if (text === undefined) {
    plan.refuse(withoutProfile(name))
    return
  }
  plan.put(name, changeProfile(text, addressing))
  plan.up('before', [name])
  plan.up('after', [name])
}

function planVlan(plan: Plan, wanted: WantedChange & { kind: 'vlan' }): void {
  const { name, addressing, parent, id } = wanted
  if (plan.link(name) !== undefined) {
    planNic(plan, { kind: 'nic', name, addressing })
    return
  }
  const text = setKey(setKey(newProfile(name, 'vlan'), 'vlan', 'id', String(id)), 'vlan', 'parent', parent)
  plan.put(name, changeProfile(text, addressing))
  plan.device(name, false, true)
  plan.up('after', [name])
}

function planMaster(plan: Plan, wanted: WantedChange & { kind: 'bond' | 'bridge' }): void {
  const { name, kind, addressing, members } = wanted
  const { existing, all, joining, released, from } = membersOf(plan.link, wanted)
  const now = plan.text(name)
  if (existing !== undefined && now === undefined) {
    plan.refuse(withoutProfile(name))
    return
  }
  // IPv6, routes and options of the member come along with its address.
  let text = now ?? `${newProfile(name, kind)}${addressGroups((from && plan.text(from.name)) ?? '')}`
  const mac = now === undefined ? macFor(all, from) : undefined
  if (mac !== undefined) text = setKey(text, 'ethernet', 'cloned-mac-address', mac)
  const withoutOptions = text
  if (wanted.kind === 'bond') text = changeBond(text, wanted.options, now === undefined)
  else if (wanted.isStpOn !== undefined || now === undefined)
    // NetworkManager turns it on where a profile says nothing.
    text = setKey(text, 'bridge', 'stp', String(wanted.isStpOn ?? false))
  const isMadeAnew = now !== undefined && kind === 'bond' && text !== withoutOptions
  plan.put(name, changeProfile(text, addressing))
  if (now === undefined || isMadeAnew) plan.device(name, now !== undefined, true)
  for (const member of joining) {
    const own = plan.text(member.name) ?? newProfile(member.name, 'ethernet')
    plan.put(member.name, memberProfile(own, kind, name))
  }
  for (const member of released) release(plan, member)
  // A member brings its master up; one that was there is brought up for its own address.
  const first = existing === undefined && members.length > 0 ? [] : [name]
  plan.up('after', [...first, ...(isMadeAnew ? members : joining.map((each) => each.name)), ...released])
  plan.up('before', [
    ...(existing === undefined ? [] : [name]),
    ...(isMadeAnew ? (existing?.members ?? []) : released),
    ...joining.map((each) => each.name),
  ])
}

/** A link that is no member any more has what it had before, or no profile where we made the profile of the member. */
function release(plan: Plan, name: string): void {
  const text = plan.text(name)
  if (text === undefined) return
  if (basename(plan.link(name)?.owner.profile?.path ?? '') === ourFile(name)) plan.remove(name)
  else plan.put(name, releasedProfile(text))
}

function planDeletion(plan: Plan, name: string): void {
  const link = plan.link(name)
  const path = link?.owner.profile?.path
  if (path === undefined || basename(path) !== ourFile(name)) {
    plan.refuse(notMadeHere(name, path))
    return
  }
  plan.remove(name)
  plan.device(name, true, false)
  for (const member of link?.members ?? []) release(plan, member)
  // Members first: they bring their master up.
  plan.up('before', [...(link?.members ?? []), ...(link?.members.length ? [] : [name])])
  plan.up('after', link?.members ?? [])
}
