import { cniFolders } from '../engine/paths.ts'
import type { Subnet } from '../../base/subnet.ts'
import { chainOf, targetOf, type FilterTable } from './host-state.ts'
import type { FamilyLine, FilterState, HostState, LinkState } from './host-state.ts'
import * as ours from './ownership.ts'

/** A removal from the host, or a restoration on it. */
export type HostChange =
  | { readonly kind: 'unit' | 'slice' | 'namespace' | 'link' | 'quiet-link'; readonly name: string }
  | { readonly kind: 'ip-set'; readonly name: string }
  | { readonly kind: 'nft-table'; readonly table: string }
  /** Lines for `iptables-restore --noflush`: single rules and chains, never a whole table. */
  | {
      readonly kind: 'filter'
      readonly program: string
      readonly table: string
      readonly lines: readonly string[]
    }
  | { readonly kind: 'route' | 'policy'; readonly family: 4 | 6; readonly text: string }
  /** A file, or a folder with its content. */
  | { readonly kind: 'path'; readonly path: string }
  | { readonly kind: 'network-config'; readonly name: string; readonly content: string }
  | { readonly kind: 'sysctl'; readonly name: string; readonly value: string }

export interface RestorePlan {
  /** In the order in which they are made. */
  readonly changes: readonly HostChange[]
  /** Additions since of other owners: they stay, and are named. */
  readonly left: readonly string[]
}

/**
 * Compares the host with its record.
 * @param before undefined where the record is lost: then parts with a name of Kubernetes count as additions, nothing else is named, no
 *   setting is put back, and the files of /etc/cni and /opt/cni stay, which other runtimes use too
 * @param networks of pods and services
 */
export function planRestore(
  before: HostState | undefined,
  now: HostState,
  networks: readonly Subnet[],
): RestorePlan {
  const links = diffLinks(before?.links ?? [], now.links)
  // Another runtime, podman for example, uses the plugins of CNI too: its rules and leases look like the pods'.
  const { isCniShared } = links
  const isOurChain = (name: string) => ours.isClusterChain(name) && !(isCniShared && name.startsWith('CNI-'))
  const kept = new Set([
    ...(before ? [] : ['/etc/cni', cniFolders.configs, '/opt/cni']),
    ...(isCniShared ? ['/var/lib/cni'] : []),
  ])
  const filters = now.filters.map((each) =>
    diffFilter(
      before?.filters.find(({ program }) => program === each.program),
      each,
      isOurChain,
      networks,
    ),
  )
  const routes = diffLines(before?.routes ?? [], now.routes, (text) => ours.isClusterRoute(text, networks))
  const policies = diffLines(before?.policies ?? [], now.policies, (text) =>
    ours.isClusterPolicy(text, networks),
  )
  const tables = split(added(before?.nftTables ?? [], now.nftTables), ours.isClusterNftTable)
  const sets = split(added(before?.ipSets ?? [], now.ipSets), ours.isClusterIpSet)
  const namespaces = split(added(before?.namespaces ?? [], now.namespaces), ours.isClusterNamespace)
  const units = added(before?.units ?? [], now.units).filter(ours.isClusterUnit)
  // A route of an interface that goes needs no removal of its own.
  const gone = new Set(links.changes.flatMap((each) => (each.kind === 'link' ? [each.name] : [])))
  const stays = ({ text }: FamilyLine) => !gone.has(/ dev (\S+)/.exec(text)?.[1] ?? '')

  return {
    changes: [
      ...topmost(units).map((name) => ({ kind: 'unit', name }) as const),
      ...added(before?.slices ?? [], now.slices).map((name) => ({ kind: 'slice', name }) as const),
      ...filters.flatMap(({ changes }) => changes),
      ...tables.ours.map((table) => ({ kind: 'nft-table', table }) as const),
      ...sets.ours.map((name) => ({ kind: 'ip-set', name }) as const),
      ...routes.ours.filter(stays).map((each) => ({ kind: 'route', ...each }) as const),
      ...policies.ours.map((each) => ({ kind: 'policy', ...each }) as const),
      ...namespaces.ours.map((name) => ({ kind: 'namespace', name }) as const),
      ...links.changes,
      ...folderChanges(before, now, kept),
      ...configChanges(before, now),
      ...sysctlChanges(before, now),
    ],
    left: before
      ? [
          ...links.left,
          ...filters.flatMap(({ left }) => left),
          ...tables.others.map((table) => `nftables table ${table}`),
          ...sets.others.map((name) => `IP set ${name}`),
          ...routes.others.filter(stays).map(({ text }) => `route ${text}`),
          ...policies.others.map(({ text }) => `routing policy ${text}`),
          ...namespaces.others.map((name) => `network namespace ${name}`),
          ...(isCniShared ? ['/var/lib/cni'] : []),
          ...added(before.modules, now.modules).map((name) => `kernel module ${name}`),
        ]
      : [],
  }
}

function diffLinks(before: readonly LinkState[], now: readonly LinkState[]) {
  const known = new Set(before.map(({ name }) => name))
  const fresh = now.filter(({ name }) => !known.has(name))
  const removable = new Set(fresh.filter(({ name }) => ours.isClusterLink(name)).map(({ name }) => name))
  const portsOf = (bridge: string) =>
    now.filter((link) => link.bridge === bridge && !removable.has(link.name)).map(({ name }) => name)
  const changes: HostChange[] = []
  const left: string[] = []
  for (const { name, isUp } of fresh) {
    const ports = portsOf(name)
    if (!removable.has(name)) left.push(`interface ${name}`)
    else if (ports.length > 0) left.push(`interface ${name}, which ${ports.join(', ')} still uses`)
    else if (!ours.isModuleLink(name)) changes.push({ kind: 'link', name })
    else if (isUp) changes.push({ kind: 'quiet-link', name })
    else left.push(`interface ${name}, which is a part of a kernel module`)
  }
  const isCniShared = fresh.some(
    ({ name, bridge = '' }) => ours.isClusterLink(bridge) && !removable.has(name),
  )
  return { changes, left, isCniShared }
}

function diffFilter(
  before: FilterState | undefined,
  now: FilterState,
  isOurChain: (name: string) => boolean,
  networks: readonly Subnet[],
) {
  const changes: HostChange[] = []
  const left: string[] = []
  for (const table of now.tables) {
    const known = before?.tables.find(({ name }) => name === table.name)
    const chains = split(added(known?.chains ?? [], table.chains), isOurChain)
    const clusterChains = new Set(chains.ours)
    const rules = addedRules(known, table).filter((rule) => !clusterChains.has(chainOf(rule)))
    const otherChains = new Set(chains.others)
    const isOurs = (rule: string) =>
      clusterChains.has(targetOf(rule)) ||
      (![chainOf(rule), targetOf(rule)].some((chain) => otherChains.has(chain)) &&
        ours.isClusterRule(rule, networks))
    const { ours: deleted, others } = split(rules, isOurs)
    const lines = [
      ...deleted.map((rule) => rule.replace(/^-A/, '-D')),
      ...chains.ours.map((chain) => `-F ${chain}`),
      ...chains.ours.map((chain) => `-X ${chain}`),
    ]
    if (lines.length > 0) changes.push({ kind: 'filter', program: now.program, table: table.name, lines })
    const place = `${now.program} ${table.name}`
    left.push(
      ...chains.others.map((chain) => `${place} chain ${chain}`),
      ...others.map((rule) => `${place} rule ${rule}`),
    )
  }
  return { changes, left }
}

/** Rules that were not there before; equal ones count. */
function addedRules(before: FilterTable | undefined, now: FilterTable): readonly string[] {
  const counts = new Map<string, number>()
  for (const rule of before?.rules ?? []) counts.set(rule, (counts.get(rule) ?? 0) + 1)
  return now.rules.filter((rule) => {
    const count = counts.get(rule) ?? 0
    counts.set(rule, count - 1)
    return count <= 0
  })
}

function diffLines(
  before: readonly FamilyLine[],
  now: readonly FamilyLine[],
  isOurs: (text: string) => boolean,
) {
  const known = new Set(before.map(({ family, text }) => `${family} ${text}`))
  const fresh = now.filter(({ family, text }) => !known.has(`${family} ${text}`))
  return split(fresh, ({ text }) => isOurs(text))
}

function folderChanges(
  before: HostState | undefined,
  now: HostState,
  kept: ReadonlySet<string>,
): readonly HostChange[] {
  const paths = now.folders.flatMap(({ path, exists, entries }) => {
    if (!exists || kept.has(path)) return []
    const known = before?.folders.find((folder) => folder.path === path)
    // An older version did not record it.
    if (before && !known) return []
    if (known && !known.exists) return [path]
    return topmost(added(known?.entries ?? [], entries)).map((entry) => `${path}/${entry}`)
  })
  return topmost([...new Set(paths)]).map((path) => ({ kind: 'path', path }))
}

/** Files that a network plugin has renamed, removed or changed. */
const configChanges = (before: HostState | undefined, now: HostState): readonly HostChange[] =>
  Object.entries(before?.networkConfigs ?? {})
    .filter(([name, content]) => now.networkConfigs[name] !== content)
    .map(([name, content]) => ({ kind: 'network-config', name, content }))

const sysctlChanges = (before: HostState | undefined, now: HostState): readonly HostChange[] =>
  Object.entries(before?.sysctls ?? {})
    .filter(([name, value]) => now.sysctls[name] !== undefined && now.sysctls[name] !== value)
    .map(([name, value]) => ({ kind: 'sysctl', name, value }))

/** Without the paths that are below another one. */
function topmost(paths: readonly string[]): readonly string[] {
  const all = new Set(paths)
  const hasParent = (path: string) => {
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1))
      if (all.has(path.slice(0, end))) return true
    return false
  }
  return paths.filter((path) => !hasParent(path))
}

function added(before: readonly string[], now: readonly string[]): readonly string[] {
  const known = new Set(before)
  return now.filter((each) => !known.has(each))
}

function split<T>(items: readonly T[], isOurs: (item: T) => boolean) {
  const { ours = [], others = [] } = Object.groupBy(items, (item) => (isOurs(item) ? 'ours' : 'others'))
  return { ours, others }
}

/** For operators, for example `interface flannel.1`. */
export function titleOf(change: HostChange): string {
  switch (change.kind) {
    case 'unit':
      return `unit file ${change.name}`
    case 'slice':
      return `slice ${change.name}`
    case 'namespace':
      return `network namespace ${change.name}`
    case 'link':
    case 'quiet-link':
      return `interface ${change.name}`
    case 'ip-set':
      return `IP set ${change.name}`
    case 'nft-table':
      return `nftables table ${change.table}`
    case 'filter':
      return `rules and chains of ${change.program} ${change.table} (${change.lines.length})`
    case 'route':
      return `route ${change.text}`
    case 'policy':
      return `routing policy ${change.text}`
    case 'path':
      return change.path
    case 'network-config':
      return `${cniFolders.configs}/${change.name} as it was`
    case 'sysctl':
      return `${change.name.replaceAll('/', '.')} = ${change.value}`
  }
}
