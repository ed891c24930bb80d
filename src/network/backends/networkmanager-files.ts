// Texts of profiles of NetworkManager, nm-settings-keyfile(5): with another address, of a member, and of a link that edgehostd makes. Every line that is
// not named stays. Pure.

import { hash } from 'node:crypto'
import type { Addressing, WantedBond } from '../wanted.ts'
import { keyOf, parseKeyfile } from './keyfile.ts'
import { bondOptionsOf } from './planned.ts'

/** Without `uuid=` the one that NetworkManager made from the path of the file would change with its folder. */
export const withUuid = (text: string, uuid: string): string =>
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

/** The group that has the MTU: the group of the hardware, by the name which the file uses. */
function mtuGroup(text: string): string {
  const isWifi = /^\[(wifi|802-11-wireless)\]/m.test(text)
  if (isWifi) return /^\[802-11-wireless\]/m.test(text) ? '802-11-wireless' : 'wifi'
  return /^\[802-3-ethernet\]/m.test(text) ? '802-3-ethernet' : 'ethernet'
}

/** Groups that a member of a bond or bridge has not: addresses and routes are of the master. */
const ofAddresses = ['ipv4', 'ipv6', 'proxy']
// NetworkManager passes comments over, and keeps a file as it is unless nmcli changes it.
const former = '#edgehostd: '

/** Runs over the lines of a text with the group of each. */
const mapLines = (text: string, change: (line: string, group: string) => string): string => {
  let group = ''
  return text
    .split('\n')
    .map((line) => {
      group = /^\s*\[(.+)\]\s*$/.exec(line)?.[1] ?? group
      return change(line, group)
    })
    .join('\n')
}

/** The profile of a member: its addresses and routes stay in it as comments until it is released. */
export function memberProfile(text: string, kind: 'bond' | 'bridge', master: string): string {
  const hidden = mapLines(text, (line, group) =>
    ofAddresses.includes(group) && line.trim() !== '' && !line.startsWith('#') ? `${former}${line}` : line,
  )
  const named = setKey(hidden, 'connection', 'master', master)
  return setKey(named, 'connection', 'slave-type', kind)
}

/** The profile of a link that is no member any more: as it was, or without an address where it was always a member. */
export function releasedProfile(text: string): string {
  let released = text
  for (const key of ['master', 'slave-type', 'controller', 'port-type'])
    released = setKey(released, 'connection', key, undefined)
  if (!released.includes(`\n${former}`))
    for (const group of ['ipv4', 'ipv6']) released = setKey(released, group, 'method', 'disabled')
  return released
    .split('\n')
    .map((line) => (line.startsWith(former) ? line.slice(former.length) : line))
    .join('\n')
}

/** The UUID of a profile of ours: always the same for a name, so that a change that is planned twice is the same change (RFC 9562, 5.5). */
export function uuidFor(name: string): string {
  const digits = hash('sha1', `edgehostd ${name}`)
  const variant = ((parseInt(digits.slice(16, 18), 16) & 0x3f) | 0x80).toString(16)
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `5${digits.slice(13, 16)}`,
    `${variant}${digits.slice(18, 20)}`,
    digits.slice(20, 32),
  ].join('-')
}

/** A profile for a link that has none. */
export const newProfile = (name: string, type: 'bond' | 'bridge' | 'vlan' | 'ethernet'): string =>
  `[connection]\nid=${name}\nuuid=${uuidFor(name)}\ntype=${type}\ninterface-name=${name}\n`

/** The groups of addresses and routes of a profile, for the master that takes them over. */
export function addressGroups(text: string): string {
  const kept: string[] = []
  mapLines(text, (line, group) => {
    if (ofAddresses.includes(group) && !line.startsWith(former)) kept.push(line)
    return line
  })
  return kept.length === 0 ? '' : `\n${kept.join('\n').trim()}\n`
}

/** Sets the options of a bond that are named. */
export function changeBond(text: string, options: WantedBond, isNew: boolean): string {
  const { mode, miimon, lacpRate, hashPolicy } = bondOptionsOf(options, isNew)
  const keys = { mode, miimon: miimon?.toString(), lacp_rate: lacpRate, xmit_hash_policy: hashPolicy }
  return Object.entries(keys).reduce(
    (changed, [key, value]) => (value === undefined ? changed : setKey(changed, 'bond', key, value)),
    text,
  )
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
