import { readLinkDns } from '../../host/network/dns.ts'
import { isOfPodsName } from '../../host/network/network.ts'
import { passRefused, type HostFiles } from '../../host/files.ts'
import { parseAssignments } from '../../host/machine.ts'
import { askProperties, isServiceRunning, propertyOf } from '../../host/services.ts'
import { CommandFailed, type CommandRunner } from '../../system/runner.ts'
import {
  interfacesFile,
  parseIfstate,
  parseInterfaces,
  parseResolvconfRecord,
  sourcesOf,
} from '../backends/interfaces-file.ts'
import { parseDevices, parseDnsManager, parseKeyfile, parseProfiles } from '../backends/keyfile.ts'
import { iaidOfLease } from '../backends/networkd-files.ts'
import { readNetworkdFiles } from '../backends/networkd-folders.ts'
import { parseKernelLinks, shownLinks, type KernelLink, type LinkKind, type SysfsFacts } from './kernel.ts'
import {
  ownerOf,
  parseNetworkctl,
  type BackendStates,
  type IfupdownState,
  type NetworkdLink,
  type NetworkManagerState,
  type Owner,
} from './owners.ts'

/** A link of this host: its present state, its configuration, and the owner of that. */
export interface Link extends KernelLink {
  readonly kind: LinkKind
  readonly owner: Owner
  /** In use over this link, in the order in which they are asked. */
  readonly nameservers: readonly string[]
  /** A domain after `~` is for routing only, as in systemd.network(5). */
  readonly searchDomains: readonly string[]
  /** Names of the members of a bond or bridge. */
  readonly members: readonly string[]
  /** Names of the VLANs on it. */
  readonly vlans: readonly string[]
}

/** The network of this host at a moment. */
export interface NetworkReading {
  /** In order of their indexes. */
  readonly links: readonly Link[]
  readonly states: BackendStates
  /** What could not be read, one clause each. */
  readonly problems: readonly string[]
}

interface ReadLinksOptions {
  readonly files: HostFiles
  readonly runner: CommandRunner
}

const askMs = 5_000
// A node with hundreds of pods has thousands of routes.
const maxOutputBytes = 16_777_216

/**
 * Reads all links that are shown, from the kernel by ip(8) and from the backends that run.
 * @throws Error where ip(8) gives no links
 */
export async function readLinks({ files: all, runner }: ReadLinksOptions): Promise<NetworkReading> {
  const { files, problems: refused } = passRefused(all)
  const problems: string[] = []
  const ask = async (program: string, args: readonly string[]): Promise<string | undefined> => {
    try {
      const { exitCode, stdout, stderr } = await runner.run(program, args, {
        timeoutMs: askMs,
        maxOutputBytes,
      })
      if (exitCode === 0) return stdout
      problems.push(`${program}: ${stderr.trim().split('\n')[0] || `exit code ${exitCode ?? 'none'}`}`)
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error
      problems.push(error.message)
    }
    return undefined
  }
  const json = ['-json', '-details']
  const [addresses, routes, networkd, networkManager, ifupdown, others] = await Promise.all([
    ask('ip', [...json, 'address', 'show']),
    ask('ip', [...json, 'route', 'show', 'table', 'all']),
    readNetworkd(files, ask),
    readNetworkManager(files, ask),
    readIfupdown(files, ask),
    readOthers(files),
  ])
  const kernel = addresses === undefined ? undefined : parseKernelLinks(addresses, routes ?? '')
  if (kernel === undefined)
    throw new Error(`the links cannot be read: ${problems.join('; ') || 'ip gave no list'}`)
  const states: BackendStates = {
    others,
    ...(networkd === undefined ? {} : { networkd }),
    ...(networkManager === undefined ? {} : { networkManager }),
    ...(ifupdown === undefined ? {} : { ifupdown }),
  }
  const facts = new Map<string, SysfsFacts>()
  for (const { name } of kernel) {
    const found = await readSysfs(files, name)
    if (found) facts.set(name, found)
  }
  const owners = new Map(kernel.map(({ name }) => [name, ownerOf(name, states)]))
  const shown = shownLinks(
    kernel,
    (name) => facts.get(name),
    (name) => owners.get(name)?.configured !== undefined,
  )
  const dns = await readDns(files, runner, states, kernel, problems)
  return {
    links: shown.map((link) => ({
      ...link,
      owner: owners.get(link.name) ?? { name: 'nobody', status: 'unmanaged' },
      nameservers: dns.nameservers(link),
      searchDomains: dns.searchDomains(link),
      members: shown.filter(({ master }) => master === link.name).map(({ name }) => name),
      vlans: shown.filter(({ vlan }) => vlan?.parent === link.name).map(({ name }) => name),
    })),
    states,
    problems: [...problems, ...refused],
  }
}

type Ask = (program: string, args: readonly string[]) => Promise<string | undefined>

async function readSysfs(files: HostFiles, name: string): Promise<SysfsFacts | undefined> {
  const path = await files.link(`/sys/class/net/${name}`)
  if (path === undefined) return undefined
  const event = parseAssignments((await files.text(`${path}/uevent`)) ?? '')
  const behind = Number(await files.text(`${path}/iflink`))
  return {
    isVirtual: path.startsWith('/sys/devices/virtual/'),
    isWifi: event.get('DEVTYPE') === 'wlan',
    isEndOfAnother: behind > 0 && behind !== Number(event.get('IFINDEX')),
    isOfPods: isOfPodsName(name),
  }
}

async function readNetworkd(files: HostFiles, ask: Ask): Promise<BackendStates['networkd']> {
  if (!(await isServiceRunning(files, 'systemd-networkd.service'))) return undefined
  const found = await readNetworkdFiles(files)
  const text = await ask('networkctl', ['--json=short'])
  const links = text === undefined ? undefined : parseNetworkctl(text)
  const leases = '/run/systemd/netif/leases'
  const iaids = new Map<number, number>()
  for (const index of await files.names(leases)) {
    const iaid = iaidOfLease((await files.text(`${leases}/${index}`)) ?? '')
    if (iaid !== undefined) iaids.set(Number(index), iaid)
  }
  return { links: links ?? (await readStateFiles(files)), files: found, iaids }
}

/** What networkd keeps of its links, for a host without a system bus, where `networkctl --json` fails. */
async function readStateFiles(files: HostFiles): Promise<readonly NetworkdLink[]> {
  const folder = '/run/systemd/netif/links'
  const names = new Map<string, string>()
  for (const name of await files.names('/sys/class/net')) {
    const index = (await files.text(`/sys/class/net/${name}/ifindex`))?.trim()
    if (index !== undefined) names.set(index, name)
  }
  const links: NetworkdLink[] = []
  for (const index of await files.names(folder)) {
    const name = names.get(index)
    const values = parseAssignments((await files.text(`${folder}/${index}`)) ?? '')
    const file = values.get('NETWORK_FILE')
    const list = (key: string) => (values.get(key) ?? '').split(/\s+/).filter(Boolean)
    if (name === undefined) continue
    links.push({
      name,
      state: values.get('ADMIN_STATE') ?? 'unmanaged',
      ...(file === undefined ? {} : { file }),
      searchDomains: [...list('DOMAINS'), ...list('ROUTE_DOMAINS').map((domain) => `~${domain}`)],
    })
  }
  return links
}

async function readNetworkManager(files: HostFiles, ask: Ask): Promise<NetworkManagerState | undefined> {
  if (!(await isServiceRunning(files, 'NetworkManager.service'))) return undefined
  const terse = (fields: string, noun: string) => ask('nmcli', ['--terse', '--fields', fields, noun])
  const [devices, profiles] = await Promise.all([
    terse('DEVICE,TYPE,STATE,CON-UUID', 'device'),
    terse('NAME,UUID,TYPE,DEVICE,FILENAME', 'connection'),
  ])
  if (devices === undefined || profiles === undefined) return undefined
  const parsed = parseProfiles(profiles)
  const texts = new Map<string, string>()
  for (const { path } of parsed) {
    const text = path === '' ? undefined : await files.text(path)
    if (text !== undefined) texts.set(path, text)
  }
  const keyfiles = new Map([...texts].map(([path, text]) => [path, parseKeyfile(text)]))
  return { devices: parseDevices(devices), profiles: parsed, keyfiles, texts }
}

async function readIfupdown(files: HostFiles, ask: Ask): Promise<IfupdownState | undefined> {
  const main = await files.text(interfacesFile)
  // The folder of its state is there since ifupdown was used at this boot; without it the file is a leftover.
  if (main === undefined || (await files.names('/run/network')).length === 0) return undefined
  const state = await ask('ifquery', ['--state'])
  if (state === undefined) return undefined
  const read = [{ path: interfacesFile, text: main }]
  const open = async (text: string, path: string, depth: number): Promise<void> => {
    for (const { pattern, isFolder } of sourcesOf(text, path))
      for (const found of await matches(files, isFolder ? `${pattern}/*` : pattern, isFolder)) {
        const source = await files.text(found)
        if (source === undefined || read.some((each) => each.path === found)) continue
        read.push({ path: found, text: source })
        if (depth < 8) await open(source, found, depth + 1)
      }
  }
  await open(main, interfacesFile, 0)
  return { state: parseIfstate(state), interfaces: parseInterfaces(read), files: read }
}

/** Files of a pattern whose last part may have `*` and `?`; in a folder only those whose names have no dots, interfaces(5). */
async function matches(files: HostFiles, pattern: string, isFolder: boolean): Promise<readonly string[]> {
  const folder = pattern.slice(0, pattern.lastIndexOf('/'))
  const last = pattern.slice(folder.length + 1)
  if (!/[*?]/.test(last)) return [pattern]
  const form = new RegExp(
    `^${last
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '[^/]*')
      .replaceAll('?', '[^/]')}$`,
  )
  return (await files.names(folder))
    .filter((name) => form.test(name) && !name.startsWith('.'))
    .filter((name) => !isFolder || /^[\w-]+$/.test(name))
    .map((name) => `${folder}/${name}`)
}

/** Programs beside the four backends that configure links. */
async function readOthers(files: HostFiles): Promise<readonly string[]> {
  const found: string[] = []
  for (const [unit, name] of [
    ['dhcpcd.service', 'dhcpcd'],
    ['connman.service', 'ConnMan'],
    ['wicked.service', 'wicked'],
  ] as const)
    if (await isServiceRunning(files, unit)) found.push(name)
  return found
}

interface LinkDns {
  nameservers(link: KernelLink): readonly string[]
  searchDomains(link: KernelLink): readonly string[]
}

/** Name servers by link: of resolved or networkd, of NetworkManager, and of resolvconf(8). */
async function readDns(
  files: HostFiles,
  runner: CommandRunner,
  states: BackendStates,
  links: readonly KernelLink[],
  problems: string[],
): Promise<LinkDns> {
  const ofLinks = await readLinkDns(files, runner)
  problems.push(...ofLinks.problems)
  const others = new Map<string, { nameservers: readonly string[]; searchDomains: readonly string[] }>()
  if (states.networkManager !== undefined) {
    const name = 'org.freedesktop.NetworkManager'
    const answer = await askProperties(runner, {
      service: name,
      path: '/org/freedesktop/NetworkManager/DnsManager',
      interface: `${name}.DnsManager`,
    })
    if ('problem' in answer) problems.push(answer.problem)
    else
      for (const [link, found] of parseDnsManager(propertyOf(answer.properties, 'Configuration', 'aa{sv}')))
        others.set(link, found)
  }
  const folder = '/run/resolvconf/interface'
  for (const record of await files.names(folder)) {
    // Its name has the link and the program that gave it: `eth0.100.inet`.
    const link = links.find(({ name }) => name === record.slice(0, record.lastIndexOf('.')))
    if (link === undefined) continue
    const found = parseResolvconfRecord((await files.text(`${folder}/${record}`)) ?? '')
    const known = others.get(link.name) ?? { nameservers: [], searchDomains: [] }
    others.set(link.name, {
      nameservers: [...known.nameservers, ...found.nameservers],
      searchDomains: [...known.searchDomains, ...found.searchDomains],
    })
  }
  const ofNetworkd = new Map(states.networkd?.links.map((link) => [link.name, link.searchDomains]))
  return {
    nameservers: ({ index, name }) => ofLinks.servers.get(index) ?? others.get(name)?.nameservers ?? [],
    searchDomains({ name }) {
      const found = ofNetworkd.get(name) ?? []
      return found.length > 0 ? found : (others.get(name)?.searchDomains ?? [])
    },
  }
}
