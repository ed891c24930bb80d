import { arch, release, version as kernelVersion } from 'node:os'
import { join } from 'node:path'
import { masked } from '../base/mask.ts'
import type { SupportSource } from '../room.ts'
import { readStatistics } from '../store/statistics.ts'
import { readRegularFile, textFileBytes } from '../system/regular-file.ts'
import { CommandFailed, type CommandRunner } from '../system/runner.ts'
import type { Source } from './collect.ts'
import { askDaemon } from './local-api.ts'

export interface SourcesOptions {
  readonly runner: CommandRunner
  readonly socketPath: string
  /** Replies of the API. */
  readonly replies: readonly SupportSource[]
  /** Gives the configuration as text, or throws what is wrong with it. */
  readonly explainConfig: () => Promise<string>
  readonly stateDirectory: string
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

const commandMs = 30_000

// Lines have a few hundred bytes; where the first number of lines is too large, the second is read.
const journalLines = [20_000, 1_000] as const
const journalBytes = 67_108_864

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
      name: 'journal.txt',
      from: 'journalctl --unit=edgehostd',
      read: () => readJournal(runner),
    },
    ...replies.map(reply),
    {
      name: 'database.json',
      from: join(stateDirectory, 'edgehostd.db'),
      read: async () => `${JSON.stringify(readStatistics(join(stateDirectory, 'edgehostd.db')), null, 2)}\n`,
    },
  ]
}

/** The output of a program. @throws Error where it fails */
async function runWhole(
  runner: CommandRunner,
  program: string,
  args: readonly string[],
  maxOutputBytes?: number,
): Promise<string> {
  const { exitCode, stdout, stderr } = await runner.run(program, args, {
    timeoutMs: commandMs,
    ...(maxOutputBytes === undefined ? {} : { maxOutputBytes }),
  })
  if (exitCode !== 0)
    throw new Error(stderr.trim().split('\n')[0] || `the program ended with ${exitCode ?? 'a signal'}`)
  return stdout
}

async function readJournal(runner: CommandRunner): Promise<string> {
  const read = (lines: number) =>
    runWhole(
      runner,
      'journalctl',
      [
        ...['--no-pager', '--quiet', '--output=short-iso-precise', `--lines=${lines}`],
        ...units.map((unit) => `--unit=${unit}`),
      ],
      journalBytes,
    )
  const [many, few] = journalLines
  try {
    return await read(many)
  } catch (error) {
    if (!(error instanceof CommandFailed) || error.reason !== 'output-too-large') throw error
    return read(few)
  }
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
