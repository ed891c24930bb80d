import { cniFolders } from '../engine/paths.ts'

/** The chains and rules of one table of iptables, in their order. */
export interface FilterTable {
  readonly name: string
  /** Chains that the kernel does not define. */
  readonly chains: readonly string[]
  /** Lines that begin with `-A CHAIN`, without counters, spelled as iptables-save(8) and iptables-restore(8) do. */
  readonly rules: readonly string[]
}

/**
 * Parses the output of iptables-save. Tables without chains of their own and without rules are left out: which of them exist only shows
 * earlier reads, since the nft variant prints the chains of the kernel also where no table has them.
 */
export function parseFilterTables(text: string): readonly FilterTable[] {
  const tables: { name: string; chains: string[]; rules: string[] }[] = []
  for (const line of text.split('\n')) {
    const table = tables.at(-1)
    if (line.startsWith('*')) tables.push({ name: line.slice(1).trim(), chains: [], rules: [] })
    // A chain of the kernel has a policy, one of a user has `-`.
    else if (line.startsWith(':')) table?.chains.push(...(/^:(\S+) - /.exec(line)?.slice(1) ?? []))
    else if (/^(\[\d+:\d+\] )?-A /.test(line)) table?.rules.push(line.replace(/^\[\d+:\d+\] /, ''))
  }
  return tables.filter(({ chains, rules }) => chains.length + rules.length > 0)
}

/** The chain that a rule is in. */
export const chainOf = (rule: string): string => rule.split(' ', 2)[1] ?? ''

/** The chain or target that a rule jumps or goes to; empty for a rule without one. */
export const targetOf = (rule: string): string => / -[jg] (\S+)/.exec(withoutTexts(rule))?.[1] ?? ''

/** The comments of a rule, with their escapes. */
export const commentsOf = (rule: string): readonly string[] =>
  [...rule.matchAll(/ --comment ("(?:[^"\\]|\\.)*"|\S+)/g)].map(([, comment = '']) =>
    comment.replace(/^"(.*)"$/s, '$1'),
  )

/** The networks that a rule matches as source or destination, without those that it excludes. */
export const networksOf = (rule: string): readonly string[] =>
  [...withoutTexts(rule).matchAll(/(?<! !) -[sd] (\S+)/g)].map(([, network = '']) => network)

/** A comment may contain anything. */
const withoutTexts = (rule: string) => rule.replace(/"(?:[^"\\]|\\.)*"/g, '""')

/** State of a host that Kubernetes and a network plugin change, at a moment. */
export interface HostState {
  readonly links: readonly LinkState[]
  /** As `ip route` prints them, without routes that the kernel makes of addresses. */
  readonly routes: readonly FamilyLine[]
  /** Policy rules as `ip rule` prints them, for example `7000: from 172.30.0.0/24 lookup 77`. */
  readonly policies: readonly FamilyLine[]
  readonly filters: readonly FilterState[]
  /** Tables of nftables as `FAMILY NAME`, except iptables'. */
  readonly nftTables: readonly string[]
  readonly ipSets: readonly string[]
  /** Named network namespaces. */
  readonly namespaces: readonly string[]
  /** Slices of systemd that the kubelet makes for pods. */
  readonly slices: readonly string[]
  /** By their path below /proc/sys; those that do not exist are missing. */
  readonly sysctls: Readonly<Record<string, string>>
  /** Paths below /etc/systemd/system. */
  readonly units: readonly string[]
  readonly folders: readonly FolderState[]
  /** Files of /etc/cni/net.d with their content: network plugins rename foreign ones. */
  readonly networkConfigs: Readonly<Record<string, string>>
  readonly modules: readonly string[]
}

export interface LinkState {
  readonly name: string
  readonly isUp: boolean
  /** Name of the bridge that it is a port of. */
  readonly bridge?: string
}

export interface FamilyLine {
  readonly family: 4 | 6
  readonly text: string
}

/** The rules of one program, for one family and one part of the kernel. */
export interface FilterState {
  /** Name without `-save`: `iptables-nft`, `ip6tables-legacy`, or `iptables` where a host has no variants; `nft` where it has no iptables. */
  readonly program: string
  readonly tables: readonly FilterTable[]
}

/** A folder that holds things of Kubernetes. */
export interface FolderState {
  readonly path: string
  readonly exists: boolean
  /** Paths of all entries, relative to it; nothing below a mount point. */
  readonly entries: readonly string[]
}

/** The host before the first step of a cluster. */
export interface HostRecord {
  readonly version: 1
  /** RFC 3339. */
  readonly recordedAt: string
  readonly state: HostState
}

/** Folders of Kubernetes and of network plugins. */
export const clusterFolders = [
  '/etc/cni',
  cniFolders.configs,
  '/etc/kubernetes',
  '/opt/cni',
  '/run/calico',
  '/run/cilium',
  '/run/flannel',
  '/usr/libexec/kubernetes',
  '/var/lib/calico',
  '/var/lib/cni',
  '/var/lib/etcd',
  '/var/lib/kubelet',
  '/var/log/containers',
  '/var/log/pods',
] as const

/** Settings of the kernel that kubelet (cm/container_manager_linux.go), kube-proxy and network plugins change. */
export const clusterSysctls = [
  'kernel/keys/root_maxbytes',
  'kernel/keys/root_maxkeys',
  'kernel/panic',
  'kernel/panic_on_oops',
  'net/bridge/bridge-nf-call-ip6tables',
  'net/bridge/bridge-nf-call-iptables',
  'net/core/bpf_jit_enable',
  'net/ipv4/conf/all/arp_announce',
  'net/ipv4/conf/all/arp_ignore',
  'net/ipv4/conf/all/proxy_arp',
  'net/ipv4/conf/all/route_localnet',
  'net/ipv4/conf/all/rp_filter',
  'net/ipv4/conf/default/rp_filter',
  'net/ipv4/ip_forward',
  'net/ipv4/vs/conn_reuse_mode',
  'net/ipv4/vs/conntrack',
  'net/ipv4/vs/expire_nodest_conn',
  'net/ipv4/vs/expire_quiescent_template',
  'net/ipv6/conf/all/forwarding',
  'net/netfilter/nf_conntrack_max',
  'net/netfilter/nf_conntrack_tcp_be_liberal',
  'net/netfilter/nf_conntrack_tcp_timeout_close_wait',
  'net/netfilter/nf_conntrack_tcp_timeout_established',
  'net/netfilter/nf_conntrack_udp_timeout',
  'net/netfilter/nf_conntrack_udp_timeout_stream',
  'vm/overcommit_memory',
  'vm/panic_on_oom',
] as const
