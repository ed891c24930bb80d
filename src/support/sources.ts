import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { createGrowingBuffer } from '../base/growing-buffer.ts'
import type { SupportSource } from '../root/room.ts'
import { masked, maskShapes } from '../base/mask.ts'
import { arch, release, version as kernelVersion } from 'node:os'
import { join } from 'node:path'
import { readStatistics } from '../store/statistics.ts'
import { readRegularFile, textFileBytes } from '../system/regular-file.ts'
import type { CommandRunner } from '../system/runner.ts'
import { readJournal, runWhole } from './outputs.ts'
import { listClusterSources, type ClusterSourcesOptions } from './cluster-sources.ts'
import type { Source } from './collect.ts'

// Time limit of one request. A daemon that hangs costs this much time for each reply of the archive.
const answerMs = 10_000
// Far above the size of every reply in the archive.
const answerLimitBytes = 16_777_216

/**
 * Reads the body of a reply of the daemon over its local socket, as root.
 * @throws Error where the daemon does not answer, or answers with another status than 200 (or 404, where that is expected) or with more
 *   than 16 MiB
 */
export async function askDaemon(
  socketPath: string,
  path: string,
  { timeoutMs = answerMs, mayBeAbsent = false }: Pick<SupportSource, 'timeoutMs' | 'mayBeAbsent'> = {},
): Promise<string> {
  const question = request({ socketPath, path, signal: AbortSignal.timeout(timeoutMs) }).end()
  const [reply] = (await once(question, 'response')) as [IncomingMessage]
  const bytes = createGrowingBuffer(answerLimitBytes)
  for await (const chunk of reply as AsyncIterable<Buffer>)
    if (!bytes.add(chunk)) throw new Error(`the reply is larger than ${answerLimitBytes} bytes`)
  const body = bytes.bytes().toString()
  if (reply.statusCode !== 200 && !(mayBeAbsent && reply.statusCode === 404))
    throw new Error(`the daemon answered with status ${reply.statusCode ?? 0}: ${body.slice(0, 500)}`)
  return body
}

/** The data that must not leave the host, and the names that may. */
interface Secrets {
  /** Contents of files: keys, tokens. */
  readonly values: readonly Buffer[]
  /** Names of known accounts. All other names are masked: people type passwords as user names, and logs repeat them. */
  readonly userNames: ReadonlySet<string>
}

/** Replaces a name that no account has. */
const unknownUser = '(unknown user)'

// A shorter secret would be found in unrelated text.
const shortestSecret = 8

/**
 * Replaces the secrets in a text: known values in any encoding, text that looks like a token, a private key or a password,
 * and user names that no account has.
 */
export function createMask({ values, userNames }: Secrets): (text: string) => string {
  const spelled = [...new Set(values.flatMap(spellings))].sort((one, two) => two.length - one.length)
  const nameOf = (name: string) => (name === '' || userNames.has(name.toLowerCase()) ? name : unknownUser)
  return (text) => {
    let rest = text
    for (const secret of spelled) rest = rest.replaceAll(secret, masked)
    rest = maskShapes(rest)
    return (
      rest
        // Lines of the daemon.
        .replace(/("user":)("(?:[^"\\]|\\.)*")/g, (_, key: string, value: string) => {
          return `${key}${JSON.stringify(nameOf(parseText(value)))}`
        })
        // Lines of PAM modules, which write the name at the end of the line, or in quotes.
        .replace(/(\buser=)([^\n]*)$/gm, (_, key: string, name: string) => `${key}${nameOf(name.trim())}`)
        .replace(/(\buser [`'"[(])([^\n]*?)(['"\])])/g, (_, key: string, name: string, end: string) => {
          return `${key}${nameOf(name)}${end}`
        })
    )
  }
}

/** The text of a JSON string; the text as it is where it is not valid JSON. */
function parseText(quoted: string): string {
  try {
    return JSON.parse(quoted) as string
  } catch {
    return quoted
  }
}

/** The forms in which a value may occur: as it is, line by line (PEM), and encoded. */
function spellings(value: Buffer): string[] {
  const text = value.toString()
  const encoded = (['base64', 'base64url', 'hex'] as const).map((encoding) => value.toString(encoding))
  return [text, ...text.split('\n').map((line) => line.trim()), ...encoded].filter(
    (each) => each.length >= shortestSecret && !each.startsWith('-----'),
  )
}

interface SourcesOptions extends Omit<ClusterSourcesOptions, 'podLogs'> {
  readonly socketPath: string
  /** Replies of the API. */
  readonly replies: readonly SupportSource[]
  /** Returns the configuration as text, or throws its problem. */
  readonly explainConfig: () => Promise<string>
  readonly version: string
}

const units = ['edgehostd.service', 'edgehostd.socket'] as const

// Without Environment=: its values are in the configuration too, and are masked there by their key.
const properties = [
  ...['Id', 'LoadState', 'ActiveState', 'SubState', 'Result', 'StatusText', 'UnitFileState', 'DropInPaths'],
  ...[
    'ActiveEnterTimestamp',
    'InactiveEnterTimestamp',
    'NRestarts',
    'MainPID',
    'ExecMainCode',
    'ExecMainStatus',
  ],
  ...['MemoryCurrent', 'MemoryPeak', 'CPUUsageNSec', 'TasksCurrent', 'NAccepted', 'NConnections', 'NRefused'],
  ...['WatchdogUSec', 'WatchdogTimestamp', 'NeedDaemonReload'],
].join(',')

// Lines have a few hundred bytes; if the first number of lines is too large, the second is read.
const journalLines = [20_000, 1_000] as const
const journalBytes = 67_108_864

// What an operator would type to see the network of a host. None of it is a secret but keys of tunnels, which these do not show.
const networkCommands: readonly (readonly string[])[] = [
  ['ip', '-details', 'address'],
  ['ip', '-4', 'route', 'show', 'table', 'all'],
  ['ip', '-6', 'route', 'show', 'table', 'all'],
  ['ip', 'rule'],
  ['ip', 'neighbour'],
  ['ss', '--tcp', '--udp', '--listening', '--numeric', '--processes'],
  ['nft', 'list', 'ruleset'],
  ['iptables-legacy-save'],
  ['ip6tables-legacy-save'],
  ['resolvectl', '--no-pager', 'status'],
  ['cat', '/etc/resolv.conf'],
  ['cat', '/etc/hosts'],
]
const networkMs = 10_000
// Of one command. A host with many services has thousands of rules.
const networkBytes = 2_097_152

/** The state of the network, command by command; one that fails, as where its program is missing, is a line that says so. */
async function readNetwork(runner: CommandRunner): Promise<string> {
  const parts: string[] = []
  for (const [program = '', ...args] of networkCommands) {
    const text = await runWhole(runner, program, args, {
      timeoutMs: networkMs,
      maxOutputBytes: networkBytes,
    }).catch((error: unknown) => `could not be read: ${(error as Error).message}\n`)
    parts.push(`==== ${[program, ...args].join(' ')}\n${text}`)
  }
  return parts.join('\n')
}

/** All sources of the archive, the quick ones first. */
export function listSources(options: SourcesOptions): Source[] {
  const { runner, socketPath, replies, explainConfig, stateDirectory, version } = options

  const command = (name: string, from: string, program: string, ...args: string[]): Source => ({
    name,
    from,
    read: () => runWhole(runner, program, args),
  })
  const reply = ({ name, path, masks = [], ...how }: SupportSource): Source => ({
    name,
    from: `GET ${path}`,
    read: async () => {
      const body = await askDaemon(socketPath, path, how)
      return name.endsWith('.json') ? indented(body, masks) : body
    },
  })
  return [
    {
      name: 'versions.json',
      from: 'the programs',
      read: async () => `${JSON.stringify(await readVersions(runner, version), null, 2)}\n`,
    },
    {
      name: 'configuration.yaml',
      from: 'edgehostd --print-config',
      read: explainConfig,
    },
    ...units.map((unit) =>
      command(`${unit}.txt`, `systemctl show ${unit}`, 'systemctl', 'show', unit, `--property=${properties}`),
    ),
    command('units.txt', 'systemctl cat', 'systemctl', '--no-pager', 'cat', ...units),
    {
      name: 'journal-errors.txt',
      from: 'journalctl --unit=edgehostd --priority=err',
      read: () => readJournal(runner, { units, lines: [50], args: ['--priority=err'] }),
    },
    {
      name: 'journal.txt',
      from: 'journalctl --unit=edgehostd',
      read: () => readJournal(runner, { units, lines: journalLines, maxOutputBytes: journalBytes }),
    },
    { name: 'network.txt', from: 'ip, ss, nft, resolvectl', read: () => readNetwork(runner) },
    ...replies.map(reply),
    ...listClusterSources(options),
    {
      name: 'database.json',
      from: join(stateDirectory, 'edgehostd.db'),
      read: async () => `${JSON.stringify(readStatistics(join(stateDirectory, 'edgehostd.db')), null, 2)}\n`,
    },
  ]
}

async function readVersions(runner: CommandRunner, version: string) {
  const ask = (program: string, ...args: string[]) =>
    runWhole(runner, program, args).catch((error: unknown) => (error as Error).message)
  const packages = ['edgehostd', 'systemd', 'libpam-modules', 'libpam-runtime', 'libc6']
  const form = '--showformat=${Package} ${Version} ${db:Status-Abbrev}\\n'
  return {
    edgehostd: version,
    runtime: { node: process.versions.node, v8: process.versions.v8, openssl: process.versions.openssl },
    kernel: `${release()} ${kernelVersion()}`,
    architecture: arch(),
    system: await readRegularFile('/etc/os-release', textFileBytes).then(
      ({ bytes }) => bytes.toString(),
      (error: unknown) => (error as Error).message,
    ),
    systemd: (await ask('systemctl', '--version')).split('\n')[0],
    packages: (await ask('dpkg-query', '--show', form, ...packages)).trim().split('\n'),
  }
}

/** @param masks names of fields whose values are masked */
function indented(json: string, masks: readonly string[]): string {
  const mask = (key: string, value: unknown) => (masks.includes(key) ? masked : value)
  return `${JSON.stringify(JSON.parse(json), mask, 2)}\n`
}
