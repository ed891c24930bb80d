import { readFile, mkdir, lstat, readdir } from 'node:fs/promises'
import { parseMountinfo } from '../../system/mountinfo.ts'
import {
  type FilterTable,
  type HostRecord,
  parseFilterTables,
  clusterFolders,
  clusterSysctls,
  type FamilyLine,
  type FilterState,
  type FolderState,
  type HostState,
  type LinkState,
} from './host-state.ts'
import { dirname, join } from 'node:path'
import { replaceFile } from '../../system/files.ts'
import { cgroupHierarchies } from '../../host/services.ts'
import { FileRefused, readRegularFile, textFileBytes } from '../../system/regular-file.ts'
import { CommandFailed, type CommandRunner } from '../../system/runner.ts'
import { cniFolders, unitFolder } from '../engine/paths.ts'
import { StepFailed } from '../loop/step.ts'

/** Mount points of this process, the deepest last. */
export async function mountPoints(): Promise<readonly string[]> {
  const mounts = parseMountinfo(await readFile('/proc/self/mountinfo', 'utf8'))
  return mounts.map(({ mountPoint }) => mountPoint).sort()
}

// Tables that iptables manages in nftables. All others belong to one program each, and are compared as a whole.
const ofIptables = /^(ip|ip6) (filter|nat|mangle|raw|security)$/

const isTableOfIptables = (table: string): boolean => ofIptables.test(table)

interface Entry {
  readonly chain?: Place & { readonly name: string; readonly hook?: string }
  readonly rule?: Place & {
    readonly chain: string
    readonly handle: number
    readonly comment?: string
    readonly expr?: readonly Expression[]
  }
}
interface Expression {
  readonly jump?: { readonly target: string }
  readonly goto?: { readonly target: string }
  readonly match?: {
    readonly op: string
    readonly left: { readonly payload?: { readonly field: string } }
    readonly right: string | { readonly prefix?: { readonly addr: string; readonly len: number } }
  }
}
interface Place {
  readonly family: string
  readonly table: string
}

/**
 * The rules of iptables as nftables has them, for a host with nft and without iptables, where kube-proxy and network plugins bring theirs.
 * A rule is a line as iptables-save writes it, with its handle and the marks of its owner: networks, comment and target.
 * @param json the output of `nft --json list ruleset`, libnftables-json(5)
 */
function parseNftRules(json: string): readonly FilterTable[] {
  const { nftables = [] } = JSON.parse(json || '{}') as { readonly nftables?: readonly Entry[] }
  const tables = new Map<string, { chains: string[]; rules: string[] }>()
  const tableOf = ({ family, table }: Place) => {
    const name = `${family} ${table}`
    if (!isTableOfIptables(name)) return undefined
    return tables.get(name) ?? tables.set(name, { chains: [], rules: [] }).get(name)
  }
  for (const { chain, rule } of nftables) {
    // A chain with a hook is one of the kernel.
    if (chain && chain.hook === undefined) tableOf(chain)?.chains.push(chain.name)
    if (!rule) continue
    const target = rule.expr?.flatMap(({ jump, goto }) => jump?.target ?? goto?.target ?? []).at(-1)
    const comment = rule.comment === undefined ? '' : ` --comment ${JSON.stringify(rule.comment)}`
    const jump = target === undefined ? '' : ` -j ${target}`
    const matched = (rule.expr ?? []).map(spellMatch).join('')
    tableOf(rule)?.rules.push(`-A ${rule.chain} handle ${rule.handle}${matched}${comment}${jump}`)
  }
  return [...tables]
    .map(([name, { chains, rules }]) => ({ name, chains, rules }))
    .filter(({ chains, rules }) => chains.length + rules.length > 0)
}

/** A network that a rule matches as source or destination; other matches do not tell its owner. */
function spellMatch({ match }: Expression): string {
  const option = { saddr: ' -s', daddr: ' -d' }[match?.left.payload?.field ?? '']
  if (!match || !option || match.op !== '==') return ''
  if (typeof match.right === 'string') return `${option} ${match.right}`
  const { prefix } = match.right
  return prefix ? `${option} ${prefix.addr}/${prefix.len}` : ''
}

/** The lines of a change, as nft(8) reads them. */
export const nftScript = (table: string, lines: readonly string[]): string =>
  lines
    .map((line) => {
      const [action = '', chain = '', , handle = ''] = line.split(' ', 4)
      const place = `${table} ${chain}`
      if (action === '-D') return `delete rule ${place} handle ${handle}\n`
      return `${action === '-F' ? 'flush' : 'delete'} chain ${place}\n`
    })
    .join('')

/**
 * Reads the record of the host.
 * @returns undefined where there is none, `damaged` where the file is not a record of this version
 */
export async function readHostRecord(file: string): Promise<HostRecord | 'damaged' | undefined> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    const record = JSON.parse(text) as Partial<HostRecord> | null
    return record?.version === 1 && record.state ? (record as HostRecord) : 'damaged'
  } catch {
    return 'damaged'
  }
}

export async function writeHostRecord(file: string, record: HostRecord): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await replaceFile(file, JSON.stringify(record), 0o600)
}

const timeoutMs = 60_000
// A service with a thousand endpoints has some thousand rules.
const maxOutputBytes = 128 * 2 ** 20
const mostEntries = 200_000

/**
 * Reads the host state that Kubernetes changes. As root, outside of the sandbox of the daemon.
 * @throws StepFailed where a program that is there does not answer
 */
export async function readHostState(runner: CommandRunner): Promise<HostState> {
  const families = [4, 6] as const
  const lines = async (...args: readonly string[]) =>
    (await Promise.all(families.map((family) => ipLines(runner, family, args)))).flat()
  return {
    links: parseLinks(await answer(runner, 'ip', ['-json', '-details', 'link', 'show'])),
    routes: (await lines('route', 'show', 'table', 'all')).filter(isChosenRoute),
    policies: await lines('rule', 'show'),
    filters: await readFilters(runner),
    nftTables: parseNftTables((await answerIfPresent(runner, 'nft', ['list', 'tables'])) ?? ''),
    ipSets: words((await answerIfPresent(runner, 'ipset', ['list', '-name'])) ?? ''),
    namespaces: await namesIn('/run/netns'),
    slices: await readSlices(),
    sysctls: await readSysctls(),
    units: await readUnits(),
    folders: await readFolders(),
    networkConfigs: await readNetworkConfigs(),
    modules: await readModules(),
  }
}

/** @returns undefined where the program is not installed */
async function answerIfPresent(
  runner: CommandRunner,
  program: string,
  args: readonly string[],
): Promise<string | undefined> {
  try {
    const { exitCode, stdout, stderr } = await runner.run(program, args, { timeoutMs, maxOutputBytes })
    if (exitCode === 0) return stdout
    throw new StepFailed(`${program} ${args.join(' ')}: ${stderr.trim() || `exit code ${exitCode}`}`)
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error
    if (error.reason === 'not-started') return undefined
    throw new StepFailed(error.message, { cause: error })
  }
}

async function answer(runner: CommandRunner, program: string, args: readonly string[]): Promise<string> {
  const stdout = await answerIfPresent(runner, program, args)
  if (stdout === undefined) throw new StepFailed(`${program} is missing on this host; install iproute2`)
  return stdout
}

interface JsonLink {
  readonly ifname: string
  readonly flags: readonly string[]
  readonly master?: string
}

const parseLinks = (json: string): readonly LinkState[] =>
  (JSON.parse(json || '[]') as readonly JsonLink[]).map(({ ifname, flags, master }) => ({
    name: ifname,
    isUp: flags.includes('UP'),
    ...(master === undefined ? {} : { bridge: master }),
  }))

async function ipLines(
  runner: CommandRunner,
  family: 4 | 6,
  args: readonly string[],
): Promise<readonly FamilyLine[]> {
  // A host without IPv6 has no such tables, and says so by an exit code.
  const found = await answer(runner, 'ip', [`-${family}`, '-oneline', ...args]).catch((error: unknown) => {
    if (family === 6 && error instanceof StepFailed) return ''
    throw error
  })
  return found.split('\n').flatMap((line) => {
    // Flags of the moment are no part of a route, nor is the remaining lifetime.
    const text = line
      .replace(/ (linkdown|dead|pervasive|offload)\b/g, '')
      .replace(/ expires \S+/, '')
      .replace(/\s+/g, ' ')
      .trim()
    return text === '' ? [] : [{ family, text }]
  })
}

/** Routes of addresses and interfaces come and go with these; routes of router advertisements with the router. */
const isChosenRoute = ({ text }: FamilyLine): boolean =>
  !/ proto (kernel|ra|dhcp)\b/.test(text) && !/ table local\b/.test(text)

async function readFilters(runner: CommandRunner): Promise<readonly FilterState[]> {
  const found: FilterState[] = []
  for (const family of ['iptables', 'ip6tables']) {
    const refusals: StepFailed[] = []
    const read = async (program: string): Promise<boolean> => {
      const text = await answerIfPresent(runner, `${program}-save`, []).catch((error: unknown) => {
        if (!(error instanceof StepFailed)) throw error
        refusals.push(error)
        return undefined
      })
      if (text !== undefined) found.push({ program, tables: parseFilterTables(text) })
      return text !== undefined
    }
    // Both variants may have rules at once: the cluster's and the host's. A kernel may support only one of them.
    const variants = [await read(`${family}-nft`), await read(`${family}-legacy`)]
    const isRead = variants.includes(true) || (await read(family))
    if (!isRead && refusals[0]) throw refusals[0]
  }
  if (found.length > 0) return found
  const ruleset = await answerIfPresent(runner, 'nft', ['--json', 'list', 'ruleset'])
  return ruleset === undefined ? [] : [{ program: 'nft', tables: parseNftRules(ruleset) }]
}

const parseNftTables = (text: string): readonly string[] =>
  text
    .split('\n')
    .map((line) => line.replace(/^table /, '').trim())
    .filter((table) => table !== '' && !isTableOfIptables(table))

async function readSlices(): Promise<readonly string[]> {
  const found = await Promise.all(
    cgroupHierarchies.map((each) => lstat(`${each}/kubepods.slice`).catch(ifAbsent)),
  )
  return found.some((each) => each !== undefined) ? ['kubepods.slice'] : []
}

async function readSysctls(): Promise<Readonly<Record<string, string>>> {
  const values: Record<string, string> = {}
  for (const name of clusterSysctls) {
    const text = await readFile(`/proc/sys/${name}`, 'utf8').catch(ifAbsent)
    if (text !== undefined) values[name] = text.trim().replace(/\s+/g, ' ')
  }
  return values
}

async function readUnits(): Promise<readonly string[]> {
  const { entries } = await readFolder(unitFolder, new Set())
  return entries
}

async function readFolders(): Promise<readonly FolderState[]> {
  const mounts = new Set(await mountPoints())
  return Promise.all(clusterFolders.map((path) => readFolder(path, mounts)))
}

async function readFolder(path: string, mounts: ReadonlySet<string>): Promise<FolderState> {
  const stats = await lstat(path).catch(ifAbsent)
  const entries: string[] = []
  const add = async (folder: string): Promise<void> => {
    const found = await readdir(join(path, folder), { withFileTypes: true }).catch(ifAbsent)
    for (const entry of found ?? []) {
      const below = folder === '' ? entry.name : `${folder}/${entry.name}`
      entries.push(below)
      if (entries.length > mostEntries)
        throw new StepFailed(`${path} has more than ${mostEntries} entries; move what is not of Kubernetes`)
      // A volume may be a file system with millions of files.
      if (entry.isDirectory() && !mounts.has(join(path, below))) await add(below)
    }
  }
  if (stats !== undefined) await add('')
  return { path, exists: stats !== undefined, entries: entries.sort() }
}

async function readNetworkConfigs(): Promise<Readonly<Record<string, string>>> {
  const configs: Record<string, string> = {}
  for (const name of (await namesIn(cniFolders.configs)).slice(0, 100)) {
    const file = await readRegularFile(`${cniFolders.configs}/${name}`, textFileBytes).catch(
      (error: unknown) => {
        if (error instanceof FileRefused) return undefined
        ifAbsent(error as NodeJS.ErrnoException)
        return undefined
      },
    )
    if (file) configs[name] = file.bytes.toString()
  }
  return configs
}

async function readModules(): Promise<readonly string[]> {
  const text = (await readFile('/proc/modules', 'utf8').catch(ifAbsent)) ?? ''
  return text.split('\n').flatMap((line) => words(line).slice(0, 1))
}

const namesIn = async (folder: string): Promise<readonly string[]> =>
  ((await readdir(folder).catch(ifAbsent)) ?? []).sort()

const words = (text: string): readonly string[] => text.split(/\s+/).filter(Boolean)

function ifAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
}
