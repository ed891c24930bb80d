import { isRecord, type JsonObject } from '../../base/json.ts'
import { ask } from '../../host/ask.ts'
import type { CommandRunner } from '../../system/runner.ts'
import { type HostFiles, kernelTableBytes } from '../../host/files.ts'
import { readTotalMemory } from '../../host/machine.ts'
import { isServiceRunning } from '../../host/services.ts'
import { spaceOf, type FileSystemSpace } from '../../system/files.ts'
import { cniFolders, kubernetesFiles, unitFolder } from '../engine/paths.ts'
import { readHostNetworks, type HostNetworks } from './address.ts'

/** Sysctls that the kubelet compares with protectKernelDefaults: setupKernelTunables in its container manager. */
export const protectedSysctls = {
  'vm.overcommit_memory': '1',
  'vm.panic_on_oom': '0',
  'kernel.panic': '10',
  'kernel.panic_on_oops': '1',
  'kernel.keys.root_maxkeys': '1000000',
  'kernel.keys.root_maxbytes': '25000000',
} as const

const timeoutMs = 10_000
// The rules of a host with some thousand blocked addresses.
const longestRulesetBytes = 16_777_216

/**
 * Reads which chains of this host drop or reject a new connection of a pod, over TCP or UDP, that no rule of them accepts: by their policy, or by a rule whose
 * conditions each of them meets, as firewalld and many images have it at the end. nft knows the chains of iptables too, but not those of its
 * old variant, and not the conditions of extensions of iptables.
 * @param privileged runs programs with CAP_NET_ADMIN
 * @returns as operators name them; none where no program can say it, since a firewall is only warned of
 */
export async function readDroppingChains(privileged: CommandRunner): Promise<readonly string[]> {
  const ruleset: CommandRunner = {
    run: (program, args, options) =>
      privileged.run(program, args, { ...options, maxOutputBytes: longestRulesetBytes }),
  }
  const askNft = (what: string) => ask(ruleset, 'nft', ['--json', 'list', what], timeoutMs)
  const [rules, legacy, ofIptables] = await Promise.all([
    askNft('ruleset'),
    // With the name of a table it would make this table.
    ask(ruleset, 'iptables-legacy-save', [], timeoutMs),
    ask(ruleset, 'iptables-nft-save', [], timeoutMs),
  ])
  // Without the rules the policies are still known.
  const nft = 'stdout' in rules ? rules : await askNft('chains')
  return [
    ...new Set([
      ...('stdout' in nft ? parseNftChains(nft.stdout) : []),
      ...('stdout' in ofIptables ? parseSavedChains(ofIptables.stdout, 'nft') : []),
      ...('stdout' in legacy ? parseSavedChains(legacy.stdout, 'legacy') : []),
    ]),
  ]
}

/** Fate of the first packet of a pod, if conditions that depend on more do not hold. */
type Verdict = 'accept' | 'drop' | 'return' | { readonly to: string; readonly comesBack: boolean }

interface Chain {
  /** As operators name it. */
  readonly shown: string
  /** Whether all packets to this host, or through it, come here. */
  readonly isBase: boolean
  readonly drops: boolean
  /** The verdicts of its rules that every such packet meets, in order. */
  readonly verdicts: Verdict[]
}

/** The base chains in which such a packet ends as dropped. */
const droppingOf = (chains: ReadonlyMap<string, Chain>): readonly string[] =>
  [...chains.values()]
    .filter((chain) => chain.isBase && (endOf(chain, chains, new Set()) ?? chain.drops))
    .map(({ shown }) => shown)

/** Whether a chain drops the packet, true, or accepts it; undefined where it comes out of the chain undecided. */
function endOf(
  chain: Chain | undefined,
  chains: ReadonlyMap<string, Chain>,
  passed: Set<Chain>,
): boolean | undefined {
  // A loop of chains is refused by the kernel; a text may have one.
  if (!chain || passed.has(chain)) return undefined
  passed.add(chain)
  for (const verdict of chain.verdicts) {
    if (verdict === 'return') return undefined
    if (typeof verdict === 'string') return verdict === 'drop'
    const end = endOf(chains.get(verdict.to), chains, passed)
    if (end !== undefined || !verdict.comesBack) return end
  }
  return undefined
}

type Protocol = 'tcp' | 'udp'

const ofBoth = (chainsFor: (protocol: Protocol) => readonly string[]): readonly string[] => [
  ...new Set([...chainsFor('tcp'), ...chainsFor('udp')]),
]

/** The output of `nft --json list ruleset`, or of `list chains`, which has no rules: libnftables-json(5). */
export function parseNftChains(text: string): readonly string[] {
  let found: unknown
  try {
    found = JSON.parse(text)
  } catch {
    return []
  }
  const listed = isRecord(found) && Array.isArray(found.nftables) ? found.nftables.filter(isRecord) : []
  return ofBoth((protocol) => chainsOfNft(listed, protocol))
}

function chainsOfNft(listed: readonly JsonObject[], protocol: Protocol): readonly string[] {
  const keyOf = (each: JsonObject, name: unknown) =>
    `${String(each.family)} ${String(each.table)} ${String(name)}`
  const chains = new Map<string, Chain>()
  for (const { chain, rule } of listed) {
    if (isRecord(chain)) {
      const { family, table, name, type = 'filter', hook, policy } = chain
      // It sees no packet of a pod.
      if (family === 'arp') continue
      chains.set(keyOf(chain, name), {
        shown: `chain ${String(name)} of table ${String(family)} ${String(table)}`,
        isBase: type === 'filter' && ['prerouting', 'input', 'forward'].includes(String(hook)),
        drops: policy === 'drop',
        verdicts: [],
      })
    } else if (isRecord(rule) && Array.isArray(rule.expr)) {
      const verdict = verdictOfNft(rule.expr.filter(isRecord), protocol, (name) => keyOf(rule, name))
      if (verdict) chains.get(keyOf(rule, rule.chain))?.verdicts.push(verdict)
    }
  }
  return droppingOf(chains)
}

// Statements that every packet passes: those that count, set a mark, or remember an address.
const passing = ['counter', 'log', 'comment', 'mangle', 'set', 'map', 'notrack']

function verdictOfNft(
  statements: readonly JsonObject[],
  protocol: Protocol,
  keyOf: (chain: unknown) => string,
): Verdict | undefined {
  for (const statement of statements) {
    const [name = '', value] = Object.entries(statement)[0] ?? []
    if (name === 'match' && isRecord(value) && holds(value, protocol)) continue
    const chosen = name === 'vmap' && isRecord(value) ? chosenOf(value, protocol) : undefined
    if (chosen) return verdictOfNft([chosen], protocol, keyOf)
    // Matches of iptables: a comment is a match that all packets have.
    const of = name === 'xt' && isRecord(value) ? `xt ${String(value.type)} ${String(value.name)}` : name
    if (of === 'accept' || of === 'xt target ACCEPT') return 'accept'
    if (['drop', 'reject', 'xt target DROP', 'xt target REJECT'].includes(of)) return 'drop'
    if (of === 'return') return 'return'
    if ((of === 'jump' || of === 'goto') && isRecord(value))
      return { to: keyOf(value.target), comesBack: of === 'jump' }
    if (!passing.includes(of) && of !== 'xt match comment') return undefined
  }
  return undefined
}

/** Value of such a packet, by the words of nft; it comes from an interface of a pod, of any name. */
const valueOfPacket = (read: string, protocol: Protocol): string | undefined =>
  ({
    'meta l4proto': protocol,
    'ip protocol': protocol,
    'meta nfproto': 'ipv4',
    'meta protocol': 'ip',
    'meta pkttype': 'host',
    'ct state': 'new',
    'fib type': 'local',
    'tcp flags': protocol === 'tcp' ? 'syn' : undefined,
  })[read]

const interfaces = new Set(['meta iif', 'meta iifname'])
const ofPods = /^(?:cni|veth|flannel|cali|lxc|cilium|kube|vxlan)/

/** Subject of an expression, as `ct state`. */
function readOf(expression: unknown): string {
  const [kind = '', value] = isRecord(expression) ? (Object.entries(expression)[0] ?? []) : []
  // Some bits of the flags, as fin, syn, rst and ack of which syn alone is set.
  if (kind === '&' && Array.isArray(value)) return readOf(value[0])
  if (!isRecord(value)) return ''
  const { key, protocol, field, result } = value
  return kind === 'payload' ? `${String(protocol)} ${String(field)}` : `${kind} ${String(key ?? result)}`
}

/** The values on the right of a match, alone or of a set without a name. */
function valuesOf(right: unknown): readonly unknown[] {
  const set = isRecord(right) && Array.isArray(right.set) ? (right.set as unknown[]) : right
  return Array.isArray(set) ? (set as unknown[]) : [set]
}

/** Whether a match holds for every such packet. */
function holds({ op, left, right }: JsonObject, protocol: Protocol): boolean {
  const read = readOf(left)
  const values = valuesOf(right)
  if (interfaces.has(read))
    return op === '!=' && values.includes('lo') && !values.some((each) => ofPods.test(String(each)))
  const [value] = values
  if (isRecord(value) && isRecord(value.prefix) && value.prefix.len === 0) return op !== '!='
  const own = valueOfPacket(read, protocol)
  return own !== undefined && values.includes(own) === (op !== '!=')
}

/** Entry of a map without a name for such a packet. */
function chosenOf({ key, data }: JsonObject, protocol: Protocol): JsonObject | undefined {
  const own = valueOfPacket(readOf(key), protocol)
  const found = valuesOf(data).find((each) => Array.isArray(each) && each[0] === own && own !== undefined)
  const verdict: unknown = Array.isArray(found) ? found[1] : undefined
  return isRecord(verdict) ? verdict : undefined
}

/** The output of iptables-save(8) of one of its variants; a table for addresses decides on no packet. */
export const parseSavedChains = (text: string, variant: 'legacy' | 'nft'): readonly string[] =>
  [...text.matchAll(/^\*(\S+)$([\s\S]*?)^COMMIT$/gm)].flatMap(([, table = '', rules = '']) =>
    table === 'nat' ? [] : ofBoth((protocol) => parseSavedTable(table, rules, variant, protocol)),
  )

function parseSavedTable(
  table: string,
  text: string,
  variant: 'legacy' | 'nft',
  protocol: Protocol,
): readonly string[] {
  const chains = new Map<string, Chain>()
  const place = variant === 'nft' ? `table ip ${table}` : 'iptables-legacy'
  for (const [, name = '', policy] of text.matchAll(/^:(\S+) (\S+)/gm))
    chains.set(name, {
      shown: `chain ${name} of ${place}${variant === 'nft' || table === 'filter' ? '' : `, table ${table}`}`,
      isBase: ['PREROUTING', 'INPUT', 'FORWARD'].includes(name),
      drops: policy === 'DROP',
      verdicts: [],
    })
  for (const [, name = '', rule = ''] of text.matchAll(/^-A (\S+) (.*)$/gm)) {
    const verdict = verdictOfSaved(rule.match(/"(?:[^"\\]|\\.)*"|\S+/g) ?? [], protocol, chains)
    if (verdict) chains.get(name)?.verdicts.push(verdict)
  }
  return droppingOf(chains)
}

const verdictsOfTargets: Readonly<Record<string, Verdict>> = {
  ACCEPT: 'accept',
  DROP: 'drop',
  REJECT: 'drop',
  RETURN: 'return',
}

/** @param words of a rule, after the name of its chain */
function verdictOfSaved(
  words: readonly string[],
  protocol: Protocol,
  chains: ReadonlyMap<string, Chain>,
): Verdict | undefined {
  let isNegated = false
  for (let at = 0; at < words.length; at += 1) {
    const [option = '', value = '', second = ''] = words.slice(at, at + 3)
    if (option === '-j' || option === '-g')
      return (
        verdictsOfTargets[value] ??
        (chains.has(value) ? { to: value, comesBack: option === '-j' } : undefined)
      )
    if (option === '!') {
      isNegated = true
      continue
    }
    const isOfNew = value.split(',').includes('NEW')
    const isMet = {
      '-m': true,
      '--comment': true,
      '-p': value === protocol,
      '--dst-type': value === 'LOCAL',
      // Of another interface than the host's own it is not known.
      '-i': value === 'lo' || !isNegated ? false : undefined,
      '--ctstate': isOfNew,
      '--state': isOfNew,
      '--tcp-flags': protocol === 'tcp' && value === 'FIN,SYN,RST,ACK' && second === 'SYN',
    }[option]
    if (isMet === undefined || isMet === isNegated) return undefined
    isNegated = false
    at += option === '--tcp-flags' ? 2 : 1
  }
  return undefined
}

/** This host as the checks before a cluster see it. */
export interface HostFacts {
  /** As OCI images name it. */
  readonly architecture: string
  /** For example `6.1.0-18-amd64`. */
  readonly kernel: string
  readonly cgroups: { readonly version: 1 | 2; readonly controllers: ReadonlySet<string> }
  /** TCP ports that something listens at. */
  readonly ports: ReadonlySet<number>
  readonly spaces: readonly Space[]
  readonly memoryBytes: number
  readonly cores: number
  readonly clock: { readonly now: number; readonly isSynchronized: boolean }
  readonly networks: HostNetworks
  /** Names of the programs in the folders of the system. */
  readonly programs: ReadonlySet<string>
  readonly cniPlugins: ReadonlySet<string>
  /** Files and devices that are used as swap. */
  readonly swaps: readonly string[]
  /** Leftovers of another Kubernetes on this host: paths. */
  readonly kubernetes: readonly string[]
  /** Names of the network configurations of CNI. */
  readonly networkConfigs: readonly string[]
  /** Values of `protectedSysctls` that this kernel has. */
  readonly sysctls: ReadonlyMap<string, string>
  /** Chains of the firewall that drop or reject packets that no rule accepts. */
  readonly droppingChains: readonly string[]
}

interface Space extends FileSystemSpace {
  readonly folder: string
  /** Space that a cluster needs there. */
  readonly neededBytes: number
}

export interface HostFactsOptions {
  readonly files: HostFiles
  readonly runner: CommandRunner
  readonly architecture: string
  readonly cores: number
  /** Folders that the cluster fills; of several on one file system the first counts. */
  readonly folders: readonly Pick<Space, 'folder' | 'neededBytes'>[]
  /** Runs programs outside of the sandbox of the daemon. */
  readonly privileged: CommandRunner
  readonly now: () => number
}

/**
 * Reads them without a change of the host; all but the firewall within the sandbox of the daemon.
 * @param withFirewall whether its chains are read, by programs outside of the sandbox
 */
export async function readHostFacts(options: HostFactsOptions, withFirewall = true): Promise<HostFacts> {
  const { files, runner, architecture, cores, folders, now } = options
  const [cgroups, ports, memoryBytes, isSynchronized, networks, kubernetes, droppingChains] =
    await Promise.all([
      readCgroups(files),
      readPorts(files),
      readTotalMemory(files),
      isClockSynchronized(files, runner),
      readHostNetworks(files),
      readKubernetes(files),
      withFirewall ? readDroppingChains(options.privileged) : [],
    ])
  const namesOf = async (...paths: readonly string[]) =>
    new Set((await Promise.all(paths.map((path) => files.names(path)))).flat())
  return {
    architecture,
    cores,
    cgroups,
    ports,
    memoryBytes,
    networks,
    kubernetes,
    droppingChains,
    kernel: ((await files.text('/proc/sys/kernel/osrelease')) ?? '').trim(),
    spaces: onePerFileSystem((await Promise.all(folders.map(readSpace))).flat()),
    clock: { now: now(), isSynchronized },
    // The path of system/child.ts; systemd adds /usr/local for units, which packages never use.
    programs: await namesOf('/usr/sbin', '/usr/bin', '/sbin', '/bin'),
    cniPlugins: await namesOf(cniFolders.debian, cniFolders.programs),
    sysctls: await readSysctls(files),
    swaps: parseSwaps((await files.text('/proc/swaps')) ?? ''),
    networkConfigs: [...(await files.names(cniFolders.configs))].filter((name) =>
      /\.(conf|conflist|json)$/.test(name),
    ),
  }
}

async function readSpace(needed: Pick<Space, 'folder' | 'neededBytes'>): Promise<readonly Space[]> {
  const space = await spaceOf(needed.folder)
  return space ? [{ ...needed, ...space }] : []
}

/** Two folders are of one file system if all its figures are equal; a coincidence would not matter. */
const onePerFileSystem = (spaces: readonly Space[]): readonly Space[] =>
  spaces.filter(
    (space, index) =>
      index ===
      spaces.findIndex(
        ({ sizeBytes, freeBytes }) => sizeBytes === space.sizeBytes && freeBytes === space.freeBytes,
      ),
  )

/** cgroups(7): version 2 alone has cgroup.controllers at its root, and /proc/cgroups says what the kernel has of version 1. */
async function readCgroups(files: HostFiles): Promise<HostFacts['cgroups']> {
  const unified = await files.text('/sys/fs/cgroup/cgroup.controllers')
  if (unified !== undefined) return { version: 2, controllers: new Set(unified.split(/\s+/).filter(Boolean)) }
  const enabled = ((await files.text('/proc/cgroups')) ?? '').split('\n').flatMap((line) => {
    const [name = '', , , isEnabled] = line.split(/\s+/)
    return isEnabled === '1' ? [name] : []
  })
  return { version: 1, controllers: new Set(enabled) }
}

async function readSysctls(files: HostFiles): Promise<HostFacts['sysctls']> {
  const found = new Map<string, string>()
  for (const name of Object.keys(protectedSysctls)) {
    const text = await files.text(`/proc/sys/${name.replaceAll('.', '/')}`)
    if (text !== undefined) found.set(name, text.trim())
  }
  return found
}

async function readPorts(files: HostFiles): Promise<ReadonlySet<number>> {
  const texts = await Promise.all(
    ['tcp', 'tcp6'].map((name) => files.text(`/proc/net/${name}`, kernelTableBytes)),
  )
  return new Set(texts.flatMap((text) => parseListening(text ?? '')))
}

/** Ports of /proc/net/tcp in the state TCP_LISTEN, 0A (proc_net_tcp.rst of the kernel). */
export const parseListening = (text: string): readonly number[] =>
  [...text.matchAll(/^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) \S+ 0A /gm)].map(([, port = '']) => parseInt(port, 16))

/** The devices and files of /proc/swaps, proc_swaps(5). */
export const parseSwaps = (text: string): readonly string[] =>
  text
    .split('\n')
    .slice(1)
    .flatMap((line) => line.split(/\s+/).slice(0, 1))
    .filter((name) => name !== '')

/** systemd-timesyncd(8) makes the file with its first answer; chronyd says it itself; of others it is not known, and believed. */
async function isClockSynchronized(files: HostFiles, runner: CommandRunner): Promise<boolean> {
  if ((await files.text('/run/systemd/timesync/synchronized')) !== undefined) return true
  for (const unit of ['chrony.service', 'chronyd.service']) {
    if (!(await isServiceRunning(files, unit))) continue
    const answer = await ask(runner, 'chronyc', ['-c', 'tracking'], 3_000)
    return 'stdout' in answer && !answer.stdout.includes('Not synchronised')
  }
  for (const unit of ['ntpsec.service', 'ntp.service', 'ntpd.service', 'ptp4l.service', 'phc2sys.service'])
    if (await isServiceRunning(files, unit)) return true
  return false
}

const unitFolders = [
  unitFolder,
  '/usr/local/lib/systemd/system',
  '/usr/lib/systemd/system',
  '/lib/systemd/system',
]
const unitNames = [
  'kubelet.service',
  'k3s.service',
  'k3s-agent.service',
  'rke2-server.service',
  'rke2-agent.service',
  'k0scontroller.service',
]

async function readKubernetes(files: HostFiles): Promise<readonly string[]> {
  const found: string[] = []
  const look = async (folder: string, needed: readonly string[]) => {
    const names = await files.names(folder)
    found.push(...needed.filter((name) => names.includes(name)).map((name) => `${folder}/${name}`))
  }
  for (const folder of unitFolders) await look(folder, unitNames)
  const manifests = await files.names(kubernetesFiles.manifests)
  if (manifests.length > 0) found.push(kubernetesFiles.manifests)
  await look('/etc/kubernetes', ['admin.conf', 'kubelet.conf'])
  await look('/var/lib/kubelet', ['config.yaml'])
  await look('/var/lib/etcd', ['member'])
  // /lib is a link to /usr/lib where the two are one.
  return found.filter((path) => !(path.startsWith('/lib/') && found.includes(`/usr${path}`)))
}
