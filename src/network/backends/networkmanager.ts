// A change of a link of NetworkManager: its profile, a keyfile, with other values. In a trial the file lies in /run, where it wins over the kept one
// with the same UUID; a profile without `uuid=` has one that is made from its path, so that it is written into both. Only address, MTU and name
// servers are changed. Pure.

import { basename } from 'node:path'
import type { ChangeSet, StateFile } from '../change-set.ts'
import type { NetworkReading } from '../links/links.ts'
import type { Addressing, WantedChange } from '../wanted.ts'
import { keyOf, parseKeyfile, profileConfiguration } from './keyfile.ts'
import { expectedBy, expectedNow, onlyAddressing, summaryOf, vlansOn, type Planned } from './planned.ts'

const trialFolder = '/run/NetworkManager/system-connections'
const keptFolder = '/etc/NetworkManager/system-connections'

/** Plans a change of a link that NetworkManager has. Whether it suits the host was judged by the pre-flight before. */
export function planNetworkManager({ links, states }: NetworkReading, wanted: WantedChange): Planned {
  const link = links.find(({ name }) => name === wanted.name)
  const problems = onlyAddressing(wanted, link, 'NetworkManager')
  const profile = link?.owner.profile
  if (problems.length > 0 || wanted.kind === 'delete') return { kind: 'refused', problems }
  const text = profile && states.networkManager?.texts.get(profile.path)
  if (link === undefined || profile === undefined || text === undefined)
    return {
      kind: 'refused',
      problems: [
        { field: 'name', reason: `${wanted.name} has no profile that can be read; see nmcli connection` },
      ],
    }
  const changed = changeProfile(withUuid(text, profile.uuid), wanted.addressing)
  if (changed === text) return { kind: 'unchanged' }
  const name = basename(profile.path)
  const file = (folder: string, content: StateFile['content']): StateFile => ({
    path: `${folder}/${name}`,
    // It may hold a password of Wi-Fi; NetworkManager refuses one that others can read.
    mode: 0o600,
    content,
  })
  const isTrial = profile.path.startsWith(`${trialFolder}/`)
  const above = vlansOn(link, links)
  const up = [profile.uuid, ...above.flatMap(({ owner }) => owner.profile?.uuid ?? [])]
  const change: ChangeSet = {
    backend: 'networkmanager',
    links: [link.name, ...above.map((each) => each.name)],
    before: {
      files: [file(trialFolder, isTrial ? { text } : 'absent')],
      devices: [],
      up,
      expected: [link, ...above].flatMap(expectedNow),
    },
    after: {
      files: [file(trialFolder, { text: changed })],
      devices: [],
      up,
      expected: [
        ...expectedBy(link.name, profileConfiguration(parseKeyfile(changed), profile.path), true),
        ...above.flatMap(expectedNow),
      ],
    },
    kept: [file(keptFolder, { text: changed })],
    summary: summaryOf(wanted),
  }
  return { kind: 'change', change }
}

/** Without `uuid=` the one that NetworkManager made from the path of the file would change with its folder. */
const withUuid = (text: string, uuid: string): string =>
  keyOf(parseKeyfile(text), 'connection', 'uuid') === undefined
    ? setKey(text, 'connection', 'uuid', uuid)
    : text

/** Changes IPv4, MTU and name servers of a profile; every other line stays. */
export function changeProfile(text: string, addressing: Addressing): string {
  const { type, address, gateway, mtu, nameservers } = addressing
  const before = parseKeyfile(text)
  const keys = [...(before.get('ipv4')?.keys() ?? [])]
  // The first address is the one that the API shows; the others stay.
  const first = keys
    .filter((key) => /^address(?:e?s)?\d*$/.test(key))
    .toSorted((a, b) => numberOf(a) - numberOf(b))[0]
  let changed = text
  const set = (group: string, key: string, value: string | undefined) =>
    void (changed = setKey(changed, group, key, value))
  const method = { static: 'manual', dhcp: 'auto', none: 'disabled' }[type]
  set('ipv4', 'method', method)
  const value = address === undefined ? undefined : `${address}${gateway === undefined ? '' : `,${gateway}`}`
  const [given, via] = (first === undefined ? '' : (keyOf(before, 'ipv4', first) ?? '')).split(',')
  const isSame = given === address && (via ?? keyOf(before, 'ipv4', 'gateway')) === gateway
  if (!isSame || type !== 'static') {
    set('ipv4', first ?? 'address1', value)
    set('ipv4', 'gateway', undefined)
  }
  if (mtu !== undefined) set(mtuGroup(text), 'mtu', String(mtu))
  if (nameservers !== undefined)
    for (const [group, isOfGroup] of [
      ['ipv4', (server: string) => !server.includes(':')],
      ['ipv6', (server: string) => server.includes(':')],
    ] as const) {
      const servers = nameservers.filter(isOfGroup)
      set(group, 'dns', servers.length === 0 ? undefined : `${servers.join(';')};`)
    }
  return changed
}

const numberOf = (key: string) => Number(/\d*$/.exec(key)?.[0] || 0)

/** The group that has the MTU: that of the hardware, by the name which the file uses. */
function mtuGroup(text: string): string {
  const isWifi = /^\[(wifi|802-11-wireless)\]/m.test(text)
  if (isWifi) return /^\[802-11-wireless\]/m.test(text) ? '802-11-wireless' : 'wifi'
  return /^\[802-3-ethernet\]/m.test(text) ? '802-3-ethernet' : 'ethernet'
}

/** Sets a key of a group, or takes it out; the group is added where there is none. */
export function setKey(text: string, group: string, key: string, value: string | undefined): string {
  const lines = text.replace(/\n*$/, '').split('\n')
  const start = lines.findIndex((line) => line.trim() === `[${group}]`)
  if (start < 0) return value === undefined ? text : `${lines.join('\n')}\n\n[${group}]\n${key}=${value}\n`
  const next = lines.findIndex((line, index) => index > start && /^\s*\[/.test(line))
  const end = next < 0 ? lines.length : next
  const isKey = (line: string) => line.split('=')[0]?.trim() === key && !line.trim().startsWith('#')
  const inGroup = lines.slice(start + 1, end)
  const at = inGroup.findIndex(isKey)
  const others = inGroup.filter((line) => !isKey(line))
  const last = others.findLastIndex((line) => line.trim() !== '') + 1
  const place = at < 0 ? last : Math.min(at, others.length)
  const added = value === undefined ? [] : [`${key}=${value}`]
  const body = [...others.slice(0, place), ...added, ...others.slice(place)]
  return `${[...lines.slice(0, start + 1), ...body, ...lines.slice(end)].join('\n')}\n`
}
