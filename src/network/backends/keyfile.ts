// Profiles of NetworkManager as it keeps them: nm-settings-keyfile(5). Pure.

import { isOfIpv4 } from '../../base/subnet.ts'
import type { ConfiguredRoute, DeviceConfiguration, LinkConfiguration } from '../links/configuration.ts'

/** Groups of a keyfile with their keys; of a group or key that comes again, the last value counts. */
export type Keyfile = ReadonlyMap<string, ReadonlyMap<string, string>>

/** Parses a keyfile of GLib. */
export function parseKeyfile(text: string): Keyfile {
  const groups = new Map<string, Map<string, string>>()
  let current: Map<string, string> | undefined
  for (const raw of text.split('\n')) {
    const line = raw.trim()
    const group = /^\[(.+)\]$/.exec(line)?.[1]
    if (group !== undefined) {
      // The names of settings before version 1.0.
      const name = { '802-3-ethernet': 'ethernet', '802-11-wireless': 'wifi' }[group] ?? group
      current = groups.get(name) ?? new Map<string, string>()
      groups.set(name, current)
    } else if (line !== '' && !line.startsWith('#') && line.includes('=')) {
      const at = line.indexOf('=')
      current?.set(line.slice(0, at).trim(), line.slice(at + 1).trim())
    }
  }
  return groups
}

export const keyOf = (file: Keyfile, group: string, key: string): string | undefined =>
  file.get(group)?.get(key)

/** Whether NetworkManager made the profile for a link that somebody else configured; such a profile owns nothing. */
export const isGenerated = (file: Keyfile): boolean => keyOf(file, '.nmmeta', 'nm-generated') === 'true'

const list = (value: string | undefined): readonly string[] =>
  (value ?? '')
    .split(/[;,]/)
    .map((each) => each.trim())
    .filter(Boolean)

/** Values of `address1`, `address2`, … or of `route1`, …, in this order; `addresses1` and `routes1` are older spellings. */
function numbered(file: Keyfile, group: string, key: 'address' | 'route'): readonly string[] {
  const form = new RegExp(`^${key}(?:e?s)?(\\d*)$`)
  return [...(file.get(group) ?? [])]
    .flatMap(([name, value]) => {
      const digits = form.exec(name)?.[1]
      return digits === undefined ? [] : [{ at: Number(digits), value }]
    })
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value)
}

/** What a profile configures. */
export function profileConfiguration(file: Keyfile, path: string): LinkConfiguration {
  const families = ['ipv4', 'ipv6'] as const
  const given = families.flatMap((family) =>
    numbered(file, family, 'address').map((value) => {
      const [address = '', gateway] = value.split(',')
      return { address: address.trim(), gateway: gateway?.trim() }
    }),
  )
  const gatewayOf = (family: 'ipv4' | 'ipv6') =>
    keyOf(file, family, 'gateway') ??
    given.find(({ address, gateway }) => gateway && isOfIpv4(address) === (family === 'ipv4'))?.gateway
  const routes = families.flatMap((family) =>
    numbered(file, family, 'route').map((value): ConfiguredRoute => {
      const [destination = '', gateway, metric] = value.split(',').map((each) => each.trim())
      return {
        destination,
        ...(gateway ? { gateway } : {}),
        ...(metric ? { metric: Number(metric) } : {}),
      }
    }),
  )
  const method = keyOf(file, 'ipv4', 'method')
  const type = keyOf(file, 'connection', 'type')?.replace('802-3-', '')
  const mtu = Number(keyOf(file, type ?? 'ethernet', 'mtu') ?? keyOf(file, 'ethernet', 'mtu') ?? 0)
  const metric = Number(keyOf(file, 'ipv4', 'route-metric') ?? -1)
  const [gateway, gateway6] = [gatewayOf('ipv4'), gatewayOf('ipv6')]
  const master = keyOf(file, 'connection', 'master') ?? keyOf(file, 'connection', 'controller')
  return {
    files: [path],
    // A member has no method, and no address.
    type: method === 'auto' ? 'dhcp' : method === 'manual' ? 'static' : 'none',
    addresses: given.map(({ address }) => address),
    ...(gateway === undefined ? {} : { gateway }),
    ...(gateway6 === undefined ? {} : { gateway6 }),
    ...(metric < 0 ? {} : { metric }),
    ...(mtu > 0 ? { mtu } : {}),
    nameservers: families.flatMap((family) => list(keyOf(file, family, 'dns'))),
    searchDomains: families.flatMap((family) => list(keyOf(file, family, 'dns-search'))),
    routes,
    rules: families.flatMap((family) =>
      [...(file.get(family)?.keys() ?? [])].filter((key) => /^routing-rule\d*$/.test(key)),
    ).length,
    ...(master === undefined ? {} : { master }),
    vlans: [],
  }
}

/** The device that a profile makes; undefined for one of a NIC. */
export function profileDevice(file: Keyfile, path: string): DeviceConfiguration | undefined {
  const kind = keyOf(file, 'connection', 'type')
  if (kind !== 'bond' && kind !== 'vlan' && kind !== 'bridge') return undefined
  const bond = file.get('bond')
  const [mode, miimon] = [bond?.get('mode'), bond?.get('miimon')]
  const [lacpRate, hashPolicy] = [bond?.get('lacp_rate'), bond?.get('xmit_hash_policy')]
  const id = keyOf(file, 'vlan', 'id')
  return {
    file: path,
    ...(kind === 'bond'
      ? {
          bond: {
            ...(mode === undefined ? {} : { mode }),
            ...(miimon === undefined ? {} : { miimon: Number(miimon) }),
            ...(lacpRate === undefined ? {} : { lacpRate }),
            ...(hashPolicy === undefined ? {} : { hashPolicy }),
          },
        }
      : {}),
    // NetworkManager turns it on where the profile says nothing, nm-settings(5).
    ...(kind === 'bridge' ? { isStpOn: keyOf(file, 'bridge', 'stp') !== 'false' } : {}),
    ...(id === undefined ? {} : { vlanId: Number(id) }),
  }
}

/** A device of `nmcli --terse --fields DEVICE,TYPE,STATE,CON-UUID device`. */
export interface ManagedDevice {
  readonly name: string
  /** For example `connected`, `connected (externally)`, `unmanaged`. */
  readonly state: string
  /** Of the profile that is in force. */
  readonly uuid?: string
}

/** A profile of `nmcli --terse --fields NAME,UUID,TYPE,DEVICE,FILENAME connection`. */
export interface Profile {
  readonly uuid: string
  readonly path: string
}

/** Fields of a line of nmcli; a backslash stands before a colon or a backslash of a value. */
const fieldsOf = (line: string): readonly string[] =>
  (line.match(/(?:\\.|[^:\\])*(?::|$)/g) ?? []).map((field) =>
    field.replace(/:$/, '').replace(/\\(.)/g, '$1'),
  )

const linesOf = (text: string) => text.split('\n').filter((line) => line !== '')

export const parseDevices = (text: string): readonly ManagedDevice[] =>
  linesOf(text).map((line) => {
    const [name = '', , state = '', uuid = ''] = fieldsOf(line)
    return { name, state, ...(uuid === '' || uuid === '--' ? {} : { uuid }) }
  })

export const parseProfiles = (text: string): readonly Profile[] =>
  linesOf(text).map((line) => {
    const [, uuid = '', , , path = ''] = fieldsOf(line)
    return { uuid, path }
  })

/** Name servers and domains by interface, of the property `Configuration` of org.freedesktop.NetworkManager.DnsManager(5). */
export function parseDnsManager(
  configuration: unknown,
): ReadonlyMap<
  string,
  { readonly nameservers: readonly string[]; readonly searchDomains: readonly string[] }
> {
  const found = new Map<string, { nameservers: string[]; searchDomains: string[] }>()
  for (const entry of Array.isArray(configuration) ? (configuration as unknown[]) : []) {
    const field = (name: string) =>
      (entry as Readonly<Record<string, { readonly data?: unknown } | undefined>> | null)?.[name]?.data
    const name = field('interface')
    const texts = (value: unknown) =>
      Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : []
    if (typeof name !== 'string') continue
    const known = found.get(name) ?? { nameservers: [], searchDomains: [] }
    known.nameservers.push(...texts(field('nameservers')))
    known.searchDomains.push(...texts(field('domains')))
    found.set(name, known)
  }
  return found
}
