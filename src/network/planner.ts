import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { resolvedService } from '../host/network/dns.ts'
import { isInSubnet } from '../base/subnet.ts'
import { createHostFiles, type HostFiles } from '../host/files.ts'
import { isServiceRunning } from '../host/services.ts'
import { planIfupdown } from './backends/ifupdown.ts'
import { planNetworkd } from './backends/networkd.ts'
import { planNetworkManager } from './backends/networkmanager.ts'
import type { ChangedFile } from './backends/netplan.ts'
import type { Planned } from './backends/planned.ts'
import type { Backend, ChangeSet } from './change-set.ts'
import { bareAddress } from '../base/subnet.ts'
import { firstIpv4, type TextFile } from './links/configuration.ts'
import type { NetworkReading } from './links/links.ts'
import { backendNames } from './links/owners.ts'
import type { CommandRunner } from '../system/runner.ts'
import { judge, type PreflightFacts } from './preflight/preflight.ts'
import { together, withKept, withOthers } from './together.ts'
import { warningsOf, type Problem, type Read, type WantedChange } from './wanted.ts'

/** A change that was judged, with what has to be said about it. */
export interface Prepared {
  /** What speaks against it, each with its field; the rest is empty then. */
  readonly problems: readonly Problem[]
  /** Absent where there are problems, or the host is so already. */
  readonly change?: ChangeSet
  /** Routes that go with it, one clause each. */
  readonly lostRoutes: readonly string[]
  /** Addresses under which the host will be reached; a leased one is not known before. */
  readonly reachableBy: readonly string[]
  readonly warnings: readonly string[]
  /** Whether gateways or name servers of this host change: hosts beyond its networks may be out of reach. */
  readonly changesWayOut: boolean
}

/** Plans changes of the network. */
export interface Planner {
  /**
   * Judges a change and plans it.
   * @param dropsAddresses `?dropAddress=true`
   * @param now the network as it is, where the caller has just read it
   */
  prepare(read: Read, dropsAddresses: boolean, now?: NetworkReading): Promise<Prepared>
  /** Judges changes of NICs that are made together, and plans them as one. All of them have to be of one backend. */
  prepareTogether(all: readonly NamedRead[]): Promise<PreparedTogether>
}

/** What a request wants of a NIC. */
export interface NamedRead {
  readonly name: string
  readonly read: Read
}

/** Changes of NICs that were judged together. */
export interface PreparedTogether extends Pick<Prepared, 'change' | 'changesWayOut'> {
  readonly problems: readonly (Problem & { readonly name: string })[]
}

interface PlannerOptions {
  readonly files: HostFiles
  readonly runner: CommandRunner
  readonly read: () => Promise<NetworkReading>
  /** The hardware address of another device that has an address in a network of a link; undefined where none answers. */
  readonly findDevice: (address: string, link: string) => Promise<string | undefined>
  /** Addresses of the cluster on this host, canonical. */
  readonly clusterAddresses: () => readonly string[]
}

const planOf: Readonly<
  Record<Exclude<Backend, 'netplan'>, (reading: NetworkReading, wanted: WantedChange) => Planned>
> = {
  networkd: planNetworkd,
  networkmanager: planNetworkManager,
  ifupdown: planIfupdown,
}

export function createPlanner({
  files,
  runner,
  read,
  findDevice,
  clusterAddresses,
}: PlannerOptions): Planner {
  /** An address of a network that the host is in is asked for there; one of another network can only be asked for in the trial. */
  async function ask(
    { links }: NetworkReading,
    wanted: WantedChange,
  ): Promise<{ readonly taken?: Problem; readonly inTrial?: NonNullable<ChangeSet['asked']> }> {
    const address = wanted.kind === 'delete' ? undefined : wanted.addressing.address
    const own = address === undefined ? undefined : bareAddress(address)
    if (own === undefined || links.some((link) => link.addresses.some((each) => each.address === own)))
      return {}
    const link = links.find(({ addresses }) =>
      addresses.some((each) => each.prefixLength < 32 && isInSubnet(own, each)),
    )
    if (link === undefined) return { inTrial: [{ link: wanted.name, address: own }] }
    const device = await findDevice(own, link.name)
    if (device === undefined) return {}
    return { taken: { field: 'ip', reason: `${own} is taken: the device ${device} answers for it` } }
  }
  const planOn = async (present: Present, backend: Backend, wanted: WantedChange): Promise<PlannedOn> =>
    backend === 'netplan'
      ? planByNetplan({ files, runner }, present, wanted)
      : planOf[backend](present.reading, wanted)

  return {
    async prepare(body, dropsAddresses, now) {
      if ('problems' in body) return refusedBy(body.problems)
      const { wanted } = body
      const reading = now ?? (await read())
      const plan = (backend: Backend) => planOn({ reading }, backend, wanted)
      const owner = reading.links.find(({ name }) => name === wanted.name)?.owner.backend
      // Of a bond or bridge that goes, the members stay as the plan has made them.
      const removal = wanted.kind === 'delete' && owner !== undefined ? await plan(owner) : undefined
      const facts: PreflightFacts = {
        ...(await readFacts(files)),
        clusterAddresses: new Set(clusterAddresses()),
        dropsAddresses,
        released: removal?.kind === 'change' ? removal.change.after.expected : [],
      }
      const { backend, lostRoutes, reachableBy, ...judged } = judge(reading, wanted, facts)
      const problems = [...judged.problems, ...(removal?.kind === 'refused' ? removal.problems : [])]
      if (problems.length > 0 || backend === undefined) return refusedBy(problems)
      if (isConfiguredSo(reading, wanted)) return { ...refusedBy([]), reachableBy }
      const { taken, inTrial } = await ask(reading, wanted)
      if (taken !== undefined) return refusedBy([taken])
      const planned = removal ?? (await plan(backend))
      if (planned.kind === 'refused') return refusedBy(planned.problems)
      return {
        problems: [],
        ...(planned.kind === 'change'
          ? { change: { ...planned.change, ...(inTrial ? { asked: inTrial } : {}) } }
          : {}),
        lostRoutes,
        reachableBy,
        warnings: warningsOf(wanted),
        changesWayOut: changesWayOut(reading, wanted),
      }
    },

    async prepareTogether(all) {
      const problems: (Problem & { readonly name: string })[] = []
      const refuse = (name: string, found: readonly Problem[]) =>
        problems.push(...found.map((problem) => ({ ...problem, name })))
      for (const { name, read: body } of all) if ('problems' in body) refuse(name, body.problems)
      const reading = await read()
      const changing = all.flatMap(({ read: body }) =>
        'wanted' in body && body.wanted.kind === 'nic' ? [body.wanted] : [],
      )
      const facts: PreflightFacts = {
        ...(await readFacts(files)),
        clusterAddresses: new Set(clusterAddresses()),
        dropsAddresses: false,
        released: [],
      }
      let present: Present = { reading }
      let whole: ChangeSet | undefined
      for (const wanted of changing) {
        const { name } = wanted
        const others = changing.filter((each) => each !== wanted)
        const { backend, problems: found } = judge(withOthers(reading, others), wanted, facts)
        refuse(name, found)
        if (backend === undefined || found.length > 0) continue
        if (whole !== undefined && whole.backend !== backend) {
          const [first = ''] = whole.links
          const reason = `is configured by ${backendNames[backend]}, and ${first} by ${backendNames[whole.backend]}: a trial is of links of one of them; send them one after the other`
          refuse(name, [{ field: 'name', reason }])
          continue
        }
        const { taken, inTrial } = await ask(reading, wanted)
        if (taken !== undefined) refuse(name, [taken])
        const planned = await planOn(present, backend, wanted)
        if (planned.kind === 'refused') refuse(name, planned.problems)
        if (planned.kind !== 'change') continue
        const change = { ...planned.change, ...(inTrial ? { asked: inTrial } : {}) }
        whole = whole === undefined ? change : together(whole, change)
        const { netplan } = planned
        present = { reading: withKept(present.reading, change), ...(netplan ? { netplan } : {}) }
      }
      if (problems.length > 0) return { problems, changesWayOut: false }
      return {
        problems,
        ...(whole === undefined ? {} : { change: whole }),
        changesWayOut: changing.some((wanted) => changesWayOut(reading, wanted)),
      }
    },
  }
}

/** What a change is planned on: the network, and the files of netplan where an earlier change of the same trial has others. */
interface Present {
  readonly reading: NetworkReading
  readonly netplan?: NetplanInForce
}

interface NetplanInForce {
  /** Files of YAML, in the order of their names. */
  readonly yaml: readonly TextFile[]
  /** Files of networkd that netplan makes of them, by their paths. */
  readonly generated: ReadonlyMap<string, string>
}

/** A plan, and for netplan what its files are after it. */
type PlannedOn = Planned & { readonly netplan?: NetplanInForce }

const refusedBy = (problems: readonly Problem[]): Prepared => ({
  problems,
  lostRoutes: [],
  reachableBy: [],
  warnings: [],
  changesWayOut: false,
})

/** Whether a NIC is configured so already, in whose file ever: a file of ours with the same would only configure it anew. Pure. */
export function isConfiguredSo({ links }: NetworkReading, wanted: WantedChange): boolean {
  const configured = links.find(({ name }) => name === wanted.name)?.owner.configured
  if (wanted.kind !== 'nic' || configured === undefined) return false
  const { type, address, gateway, mtu, nameservers } = wanted.addressing
  return (
    configured.type === type &&
    firstIpv4(configured.addresses) === address &&
    (type === 'dhcp' || configured.gateway === gateway) &&
    (mtu === undefined || configured.mtu === mtu) &&
    (nameservers === undefined || configured.nameservers.join(' ') === nameservers.join(' '))
  )
}

/** Gateways, name servers and leases of IPv4, by the configuration; nothing about parts that the request leaves as they are. Pure. */
export function changesWayOut({ links }: NetworkReading, wanted: WantedChange): boolean {
  const own = links.find(({ name }) => name === wanted.name)
  const members = wanted.kind === 'bond' || wanted.kind === 'bridge' ? wanted.members : []
  const goes = links.filter(
    (link) => link === own || (members.includes(link.name) && link.master !== wanted.name),
  )
  const before = goes.flatMap(({ owner: { configured } }) => configured ?? [])
  const after = wanted.kind === 'delete' ? undefined : wanted.addressing
  const ways = (all: readonly { readonly type: string; readonly gateway?: string }[]) =>
    all.flatMap(({ type, gateway }) => [
      ...(type === 'dhcp' ? ['a lease'] : []),
      ...(gateway ? [gateway] : []),
    ])
  if (differ(ways(before), ways(after === undefined ? [] : [after]))) return true
  const servers = before.flatMap(({ nameservers }) => nameservers)
  return differ(servers, after === undefined ? [] : (after.nameservers ?? servers))
}

const differ = (one: readonly string[], other: readonly string[]) =>
  one.some((each) => !other.includes(each)) || other.some((each) => !one.includes(each))

const programFolders = ['/usr/sbin', '/usr/bin', '/sbin', '/bin', '/usr/local/sbin', '/usr/local/bin']

/** Programs and services of this host that a change needs. */
async function readFacts(
  files: HostFiles,
): Promise<Pick<PreflightFacts, 'usesNameservers' | 'hasProgram' | 'hasBus'>> {
  const programs = new Set((await Promise.all(programFolders.map((folder) => files.names(folder)))).flat())
  const isResolved = await isServiceRunning(files, resolvedService)
  return {
    // What networkd has of name servers goes to resolved alone; NetworkManager writes resolv.conf itself.
    usesNameservers: (backend) =>
      backend === 'networkmanager' || (backend === 'ifupdown' ? programs.has('resolvconf') : isResolved),
    hasProgram: (name) => programs.has(name),
    hasBus: (await files.names('/run/dbus')).includes('system_bus_socket'),
  }
}

const generateMs = 20_000

/** Has netplan make the files of a change in a folder of its own: it reads and writes nothing of the host. */
async function planByNetplan(
  { files, runner }: Pick<PlannerOptions, 'files' | 'runner'>,
  { reading, netplan }: Present,
  wanted: WantedChange,
): Promise<PlannedOn> {
  // It loads a parser of YAML, which no start of the daemon needs.
  const { changedFiles, netplanFolders, planNetplan } = await import('./backends/netplan.ts')
  const inForce = netplan?.yaml ?? (await readNetplan(files, netplanFolders))
  const edited = changedFiles(reading, wanted, inForce)
  if ('problems' in edited) return { kind: 'refused', problems: edited.problems }
  const folder = await mkdtemp(join(tmpdir(), 'edgehostd-netplan-'))
  try {
    const yaml = join(folder, 'etc/netplan')
    await mkdir(yaml, { recursive: true })
    // A later file of the same name replaces the one before it.
    const texts = new Map([...inForce, ...edited.files].map(({ path, text }) => [basename(path), text]))
    for (const [name, text] of texts)
      if (text !== undefined) await writeFile(join(yaml, name), text, { mode: 0o600 })
    const arguments_ = ['generate', '--root-dir', folder]
    const { exitCode, stderr } = await runner.run('netplan', arguments_, { timeoutMs: generateMs })
    if (exitCode !== 0) {
      const reason = `${wanted.name} cannot be changed, netplan refuses its file: ${stderr.trim().split('\n').at(-1) ?? ''}`
      return { kind: 'refused', problems: [{ field: 'name', reason }] }
    }
    const generated = await readGenerated(createHostFiles(folder))
    const planned = planNetplan(reading, wanted, {
      files: inForce,
      changed: edited.files,
      before: netplan?.generated ?? (await readGenerated(files)),
      after: generated,
      hasCloudInit: (await files.names('/etc/cloud')).length > 0,
    })
    return { ...planned, netplan: { yaml: withChanged(inForce, edited.files), generated } }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const withChanged = (all: readonly TextFile[], changed: readonly ChangedFile[]): readonly TextFile[] =>
  all.flatMap((file) => {
    const found = changed.find(({ path }) => path === file.path)
    const text = found === undefined ? file.text : found.text
    return text === undefined ? [] : [{ path: file.path, text }]
  })

/** Files of netplan that count, in the order of their names. */
async function readNetplan(files: HostFiles, folders: readonly string[]): Promise<readonly TextFile[]> {
  const found = new Map<string, TextFile>()
  for (const folder of folders)
    for (const name of await files.names(folder)) {
      if (!name.endsWith('.yaml') || found.has(name)) continue
      const path = `${folder}/${name}`
      const text = await files.text(path)
      if (text !== undefined) found.set(name, { path, text })
    }
  return [...found].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, file]) => file)
}

async function readGenerated(files: HostFiles): Promise<ReadonlyMap<string, string>> {
  const folder = '/run/systemd/network'
  const found = new Map<string, string>()
  for (const name of await files.names(folder)) {
    const text = name.startsWith('10-netplan-') ? await files.text(`${folder}/${name}`) : undefined
    if (text !== undefined) found.set(`${folder}/${name}`, text)
  }
  return found
}
