import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { shellWord } from '../base/printable.ts'
import { timeInName } from '../base/time.ts'
import { stringify } from 'yaml'
import {
  explainConfig,
  loadConfig,
  parseCommandLine,
  supportSources,
  type Config,
} from '../edgehostd/declarations.ts'
import { defaultStateDirectory } from '../program/config.ts'
import { readRegularFile, textFileBytes } from '../system/regular-file.ts'
import { removeOnSignal } from '../program/remove-on-signal.ts'
import { createRunner, type CommandRunner } from '../system/runner.ts'
import { OutputFailed, writeError, writeOutput } from '../program/standard-output.ts'
import { createStatusLine } from '../program/status-line.ts'
import { writeArchive, type Member, collect, type Collected } from './collect.ts'
import { clusterPaths } from '../cluster/engine/paths.ts'
import { readSensitiveValues, type SensitiveValues } from '../cluster/sensitive-values.ts'
import { secretFile } from '../secrets/secret-file.ts'
import { firstPage, firstPageFiles } from './first-page.ts'
import { createMask, listSources } from './sources.ts'
import { findLaunch } from './running-daemon.ts'

// Set by the build.
declare const __VERSION__: string

/**
 * The process of `edgehostctl support`: it collects the data that helps to understand a host in one archive, with secrets
 * masked. The daemon need not run; a source that cannot be read is named.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      socket: { type: 'string', default: '' },
      file: { type: 'string' },
      output: { type: 'string', default: 'table' },
      'limit-bytes': { type: 'string', default: 'Infinity' },
    },
  })
  const runner = createRunner()
  const madeAt = new Date()
  const folder = `edgehostd-support-${hostname()
    .replace(/[^\w.-]/g, '-')
    .slice(0, 40)}-${timeInName(madeAt.getTime())}`
  const file = values.file ?? `${folder}.tar.zst`

  const launch = await findLaunch(runner)
  const commandLine = parseCommandLine(launch?.args ?? [])
  const load = () => loadConfig({ commandLine, environment: launch?.environment ?? process.env })
  const config = await load().then(
    (loaded) => loaded.config,
    () => undefined,
  )
  const stateDirectory = config?.state.directory ?? defaultStateDirectory
  const secrets = await readSecrets(secretFiles(stateDirectory, config))
  const registryPassword = await readSecrets([join(stateDirectory, 'registry-password')])
  const collected: Collected[] = []
  const line = createStatusLine(process.stderr)

  async function* members(): AsyncGenerator<Member> {
    const sources = listSources({
      runner,
      socketPath: values.socket,
      replies: supportSources,
      explainConfig: async () => explainConfig(await load()),
      stateDirectory,
      version: __VERSION__,
      sensitive: await readSensitive(stateDirectory),
    })
    const mask = createMask({
      values: [...secrets, ...registryPassword, ...registryPassword.map(asRegistryLogin)],
      userNames: await readUserNames(runner),
    })
    const read = (isEarly: boolean) =>
      collect({
        sources: sources.filter(({ name }) => firstPageFiles.some((each) => each === name) === isEarly),
        mask,
        folder,
        onBegin: ({ from }) => line.draw(`reading ${from}`),
        onEnd: (each) => collected.push(each),
      })
    const early: Member[] = []
    for await (const member of read(true)) early.push(member)
    const page = firstPage({
      hostName: hostname(),
      madeTimestamp: madeAt.toISOString(),
      version: __VERSION__,
      files: new Map(early.map(({ name, content }) => [name.slice(folder.length + 1), content.toString()])),
      problems: collected.flatMap(({ from, problem }) => (problem === undefined ? [] : [{ from, problem }])),
    })
    yield { name: `${folder}/README.txt`, content: Buffer.from(mask(page)) }
    yield* early
    yield* read(false)
    const summary = { madeTimestamp: madeAt.toISOString(), version: __VERSION__, files: collected }
    yield { name: `${folder}/summary.json`, content: Buffer.from(`${JSON.stringify(summary, null, 2)}\n`) }
  }

  const packing = { madeAt: madeAt.getTime(), limitBytes: Number(values['limit-bytes']) }
  await writeArchive(file, members(), packing, removeOnSignal()).finally(line.clear)
  report(file, collected, values.output)
}

/** Files with secrets of this host. */
const secretFiles = (stateDirectory: string, config: Config | undefined): string[] =>
  [
    join(stateDirectory, secretFile),
    join(stateDirectory, 'tls', 'key.pem'),
    join(stateDirectory, 'platform', 'host-key.pem'),
    config?.platform.registrationTokenFile,
    config?.api.tls.keyFile,
    config?.metrics.tokenFile,
  ].filter((file) => file !== undefined)

/**
 * Reads the sensitive values of the cluster, which its programs and pods may quote.
 * @returns undefined where there is no cluster; an error where they cannot be read
 */
async function readSensitive(stateDirectory: string): Promise<SensitiveValues | Error | undefined> {
  const database = join(stateDirectory, 'edgehostd.db')
  try {
    const { bytes } = await readRegularFile(join(stateDirectory, secretFile), textFileBytes)
    return readSensitiveValues(database, bytes)
  } catch (error) {
    // Only with a cluster there is something to leave out.
    return existsSync(clusterPaths(stateDirectory).hostRecord) ? (error as Error) : undefined
  }
}

/** The password of the registry as container runtimes send it, RFC 7617. */
const asRegistryLogin = (password: Buffer) => Buffer.from(`edgehostd:${password.toString().trim()}`)

/** Reads the secrets. A file that cannot be read is skipped: its content then cannot be in the archive either. */
async function readSecrets(files: readonly string[]): Promise<Buffer[]> {
  const read = await Promise.all(
    files.map((file) => readRegularFile(file, textFileBytes).catch(() => undefined)),
  )
  return read.flatMap((each) => each?.bytes ?? [])
}

/** Reads the account names that NSS lists. The accounts of a directory that does not list them are masked as unknown names. */
async function readUserNames(runner: CommandRunner): Promise<Set<string>> {
  const { stdout } = await runner.run('getent', ['passwd'], { timeoutMs: 10_000, maxOutputBytes: 67_108_864 })
  return new Set(stdout.split('\n').map((line) => (line.split(':')[0] ?? '').toLowerCase()))
}

function report(file: string, files: readonly Collected[], format: string): void {
  const problems = files.filter(({ problem }) => problem !== undefined)
  if (format !== 'table') {
    // The archive itself is written to standard output.
    const write = file === '-' ? writeError : writeOutput
    const value = { file, files }
    write(format === 'yaml' ? stringify(value) : `${JSON.stringify(value, null, 2)}\n`)
    return
  }
  for (const { from, problem = '' } of problems) writeError(`not in the archive: ${from}: ${problem}\n`)
  if (file === '-') return
  writeOutput(
    `${file} holds ${files.length - problems.length} files about this host; its secrets are masked.\n` +
      `Check the content before you pass it on: tar --zstd -xf ${shellWord(file)}\n`,
  )
}

main().catch((error: unknown) => {
  process.exitCode = 1
  // The program that reads standard output has ended.
  if (error instanceof OutputFailed && error.isClosed) return
  const { message, code, stack } = error as NodeJS.ErrnoException
  // An error of this program itself is shown with its stack.
  const isOurs = code === undefined && !(error instanceof OutputFailed)
  writeError(`edgehostctl: ${isOurs ? stack : message}\n`)
})
