import { isRecord, parseJson } from '../../base/json.ts'
import type { Backend } from '../change-set.ts'
import {
  isGenerated,
  keyOf,
  profileConfiguration,
  profileDevice,
  type Keyfile,
  type ManagedDevice,
  type Profile,
} from '../backends/keyfile.ts'
import { stanzaConfiguration, type Interfaces } from '../backends/interfaces-file.ts'
import { networkConfiguration } from '../backends/networkd-files.ts'
import { deviceFile, fileInForce, type NetworkdFiles } from '../backends/networkd-folders.ts'
import type { DeviceConfiguration, LinkConfiguration, TextFile } from './configuration.ts'

/** A link of `networkctl --json=short`. */
export interface NetworkdLink {
  readonly name: string
  /** AdministrativeState: unmanaged, pending, initialized, configuring, configured, failed or linger. */
  readonly state: string
  /** The file in force. */
  readonly file?: string
  readonly searchDomains: readonly string[]
}

/** Parses `networkctl --json=short`; undefined for other text. */
export function parseNetworkctl(text: string): readonly NetworkdLink[] | undefined {
  const reply = parseJson(text)
  if (!isRecord(reply) || !Array.isArray(reply.Interfaces)) return undefined
  const domains = (list: unknown, sign = '') =>
    (Array.isArray(list) ? list : [])
      .filter(isRecord)
      .flatMap(({ Domain: domain }) => (typeof domain === 'string' ? [`${sign}${domain}`] : []))
  return reply.Interfaces.filter(isRecord).flatMap((entry) => {
    const { Name: name, AdministrativeState: state, NetworkFile: file } = entry
    if (typeof name !== 'string' || typeof state !== 'string') return []
    return [
      {
        name,
        state,
        ...(typeof file === 'string' ? { file } : {}),
        searchDomains: [...domains(entry.SearchDomains), ...domains(entry.RouteDomains, '~')],
      },
    ]
  })
}

/** What NetworkManager says of links and profiles, and the profiles themselves by their paths. */
export interface NetworkManagerState {
  readonly devices: readonly ManagedDevice[]
  readonly profiles: readonly Profile[]
  readonly keyfiles: ReadonlyMap<string, Keyfile>
  /** Their texts. */
  readonly texts: ReadonlyMap<string, string>
}

/** What ifupdown says. */
export interface IfupdownState {
  /** Links that are up, with the names of their stanzas. */
  readonly state: ReadonlyMap<string, string>
  readonly interfaces: Interfaces
  /** What was read for it, /etc/network/interfaces first. */
  readonly files: readonly TextFile[]
}

/** All that the backends of a host say; one that does not run or is not installed is absent. */
export interface BackendStates {
  readonly networkd?: {
    readonly links: readonly NetworkdLink[]
    readonly files: NetworkdFiles
    /** IAIDs with which the links asked for their leases, by their indexes. */
    readonly iaids: ReadonlyMap<number, number>
  }
  readonly networkManager?: NetworkManagerState
  readonly ifupdown?: IfupdownState
  /** Other programs that configure links, for example dhcpcd. */
  readonly others: readonly string[]
}

/** Who configures a link. */
export interface Owner {
  /** Absent where we cannot change the link. */
  readonly backend?: Backend
  /** For people: `systemd-networkd`, `netplan with NetworkManager`, `nobody`. */
  readonly name: string
  readonly configured?: LinkConfiguration
  readonly device?: DeviceConfiguration
  /** As the backend words the state of the link. */
  readonly status: string
  /** Of NetworkManager: the profile in force. */
  readonly profile?: Profile
}

/** Names of the backends for people. */
export const backendNames: Readonly<Record<Backend, string>> = {
  networkd: 'systemd-networkd',
  netplan: 'netplan',
  networkmanager: 'NetworkManager',
  ifupdown: 'ifupdown',
}

const ofNetplan = '/run/systemd/network/10-netplan-'

/** Says who owns a link, by what the backends say. Pure. */
export function ownerOf(name: string, states: BackendStates): Owner {
  const owners = [ofNetworkd(name, states), ofNetworkManager(name, states), ofIfupdown(name, states)].filter(
    (owner) => owner !== undefined,
  )
  const [only, ...more] = owners
  if (only === undefined) {
    const [other] = states.others
    return { name: other ?? 'nobody', status: networkdState(name, states) ?? 'unmanaged' }
  }
  if (more.length === 0) return only
  // The configuration is shown as the first of them has it; in force are the settings of the last one to run.
  const { status, configured, device } = only
  return {
    name: owners.map((owner) => owner.name).join(' and '),
    status,
    ...(configured === undefined ? {} : { configured }),
    ...(device === undefined ? {} : { device }),
  }
}

const networkdState = (name: string, { networkd }: BackendStates) =>
  networkd?.links.find((link) => link.name === name)?.state

function ofNetworkd(name: string, { networkd }: BackendStates): Owner | undefined {
  const link = networkd?.links.find((each) => each.name === name)
  if (networkd === undefined || link?.file === undefined) return undefined
  if (['unmanaged', 'linger'].includes(link.state)) return undefined
  const file = fileInForce(networkd.files, link.file)
  const device = deviceFile(networkd.files, name)
  const backend = link.file.startsWith(ofNetplan) ? 'netplan' : 'networkd'
  return {
    backend,
    name: backendNames[backend],
    status: link.state,
    configured: file ? networkConfiguration(file.unit, file.files) : networkConfiguration([], [link.file]),
    ...(device === undefined ? {} : { device }),
  }
}

function ofNetworkManager(name: string, { networkManager }: BackendStates): Owner | undefined {
  const device = networkManager?.devices.find((each) => each.name === name)
  if (networkManager === undefined || device === undefined) return undefined
  const { state, uuid } = device
  if (state === 'unmanaged' || state.includes('externally')) return undefined
  const { profiles, keyfiles } = networkManager
  // A link without a cable has no profile in force; the one that is for it is found by its name.
  const profile =
    profiles.find((each) => each.uuid === uuid) ??
    profiles.find(({ path }) => {
      const keyfile = keyfiles.get(path)
      return keyfile !== undefined && keyOf(keyfile, 'connection', 'interface-name') === name
    })
  const keyfile = profile && keyfiles.get(profile.path)
  if (profile === undefined || (keyfile && isGenerated(keyfile))) return undefined
  const made = keyfile && profileDevice(keyfile, profile.path)
  const isOfNetplan = /\/netplan-[^/]*$/.test(profile.path)
  return {
    ...(isOfNetplan ? {} : { backend: 'networkmanager' as const }),
    name: isOfNetplan ? 'netplan with NetworkManager' : backendNames.networkmanager,
    status: state,
    profile,
    ...(keyfile === undefined ? {} : { configured: profileConfiguration(keyfile, profile.path) }),
    ...(made === undefined ? {} : { device: made }),
  }
}

function ofIfupdown(name: string, { ifupdown }: BackendStates): Owner | undefined {
  if (ifupdown === undefined) return undefined
  const logical = ifupdown.state.get(name)
  const found = stanzaConfiguration(ifupdown.interfaces, logical ?? name)
  if (logical === undefined && found === undefined) return undefined
  // A stanza that gives nothing, of a link that is not up, is a note of the administrator.
  if (logical === undefined && found?.type === 'none' && found.master === undefined) return undefined
  const { device, ...configured } = found ?? {}
  return {
    backend: 'ifupdown',
    name: backendNames.ifupdown,
    status: logical === undefined ? 'down' : 'configured',
    ...(found === undefined ? {} : { configured: configured as LinkConfiguration }),
    ...(device === undefined ? {} : { device }),
  }
}
