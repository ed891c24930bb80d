import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { program } from '../base/program.ts'
import type { CommandLine } from '../config/command-line.ts'
import type { Loaded } from '../config/load.ts'
import { ConfigInvalid } from '../config/problem.ts'
import type { Configuration } from './configuration.ts'
import { endSessions, endProcess } from '../program/end-sessions.ts'
import { adviseOnStart } from '../errors/advice.ts'
import { exitCodes, StartError } from '../errors/start-error.ts'
import { defaultStateDirectory } from '../program/config.ts'
import { createFailedStarts } from '../program/failed-starts.ts'
import { createServiceManager } from '../service/systemd.ts'
import { isDamage, suspectDatabase } from '../store/database.ts'
import { databaseName } from '../store/database-name.ts'
import { createLog, type Logger } from '../system/log.ts'
import { createRunner } from '../system/runner.ts'
import { OutputFailed, writeError, writeOutput } from '../program/standard-output.ts'

// Baked in by the build.
declare const __VERSION__: string
declare const __BUILD_DATE__: number

/** The parts of the configuration that the process itself uses. */
interface ProcessConfig {
  readonly log: { readonly level: Parameters<typeof createLog>[0] }
  readonly state: { readonly directory: string }
}

/** A composition root that was built. */
export interface Daemon {
  /** Resolves once the daemon accepts connections. */
  start(): Promise<void>
  /** Finishes the requests in flight, then stops every room in reverse order of the start. */
  stop(): Promise<void>
  /** Reads the files again that an administrator may have replaced; connections stay open. */
  reload(): Promise<void>
}

export interface DaemonOptions<Config> {
  readonly config: Config
  readonly log: Logger
  readonly version: string
  /** Milliseconds since 1970. */
  readonly buildDate: number
}

/** Differences between the processes of our programs. */
export interface Program<Config extends ProcessConfig> {
  readonly configuration: Configuration<Config>
  readonly createDaemon: (options: DaemonOptions<Config>) => Promise<Daemon>
  /** Whether its unit is started again also after a refusal that only an operator can end, see `exitCodes`. */
  readonly isStartedAgain: boolean
}

/** The process of a daemon: arguments, configuration, signals, exit codes. */
export function runProgram<Config extends ProcessConfig>(its: Program<Config>): void {
  main(its).catch((error: unknown) => {
    const isOutput = error instanceof OutputFailed
    if (isOutput && error.isClosed) process.exit(exitCodes.ok)
    if (isOutput) writeError(`${program.daemon}: ${error.message}\n`)
    else writeError(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
    process.exit(exitCodes.failed)
  })
}

async function main<Config extends ProcessConfig>(its: Program<Config>): Promise<void> {
  const { configuration } = its
  const commandLine = configuration.parseCommandLine(process.argv.slice(2))
  /** @param onUnseen called for each file that the configuration names and that only root may read */
  const load = (onUnseen: (file: string) => void = () => undefined) =>
    configuration.loadConfig({ commandLine, environment: process.env, onUnseen })
  switch (commandLine.action) {
    case 'help':
      writeOutput(configuration.helpText())
      return
    case 'version':
      writeOutput(`${program.daemon} ${__VERSION__}\n`)
      return
    case 'check-config':
    case 'print-config':
      return showConfig(commandLine, configuration, load)
    case 'end-sessions':
      return endAllSessions(commandLine, configuration)
    case 'run':
      return run(its, () => load())
  }
}

/** Prints plain text for an operator; problems go to standard error. */
async function showConfig<Config>(
  { action }: CommandLine,
  { explainConfig }: Configuration<Config>,
  load: (onUnseen: (file: string) => void) => Promise<Loaded<Config>>,
): Promise<void> {
  const unseen: string[] = []
  try {
    const loaded = await load((file) => unseen.push(file))
    writeOutput(action === 'print-config' ? explainConfig(loaded as Loaded) : 'the configuration is good\n')
    for (const file of unseen) writeError(`not checked, since only root may read it: ${file}\n`)
  } catch (error) {
    if (!(error instanceof ConfigInvalid)) throw error
    writeError(`${error.message}\n`)
    process.exitCode = exitCodes.badConfiguration
  }
}

/** Runs without a daemon: the old secret has to be gone before a daemon starts and accepts its tokens again. */
async function endAllSessions<Config extends ProcessConfig>(
  commandLine: CommandLine,
  configuration: Configuration<Config>,
): Promise<void> {
  try {
    // Not with its files and mounts: sessions have to end also while a disk is missing.
    const { config } = await configuration.loadConfig({ commandLine, environment: process.env })
    const { directory } = config.state
    const { wasThere, isRunning } = await endSessions(directory, createLog('error'))
    writeOutput(
      wasThere
        ? `the secret of ${directory} is removed: every session ends and all users have to log in again\n`
        : `${directory} contains no secret: its sessions can no longer be used\n`,
    )
    writeOutput(
      isRunning
        ? `the daemon runs and still has the old secret; end the sessions now: systemctl restart ${program.daemon}.service\n`
        : `the next start makes a new secret: systemctl start ${program.daemon}.service\n`,
    )
  } catch (error) {
    if (!(error instanceof ConfigInvalid) && (error as NodeJS.ErrnoException).code === undefined) throw error
    writeError(`${(error as Error).message}\n`)
    process.exitCode = error instanceof ConfigInvalid ? exitCodes.badConfiguration : exitCodes.failed
  }
}

async function run<Config extends ProcessConfig>(
  its: Program<Config>,
  load: () => Promise<Loaded<Config>>,
): Promise<void> {
  // Only the daemon may read the files it writes, also when it does not run as a unit.
  process.umask(0o077)
  const failedStarts = createFailedStarts(process.env.RUNTIME_DIRECTORY)
  let log = createLog('info')
  let stateDirectory: string = defaultStateDirectory
  let daemon: Daemon
  try {
    const { config } = await load()
    log = createLog(config.log.level)
    stateDirectory = config.state.directory
    daemon = await its.createDaemon({ config, log, version: __VERSION__, buildDate: __BUILD_DATE__ })
    // From here on a signal means an orderly stop, also during the start.
    const starting = daemon.start()
    superviseProcess(daemon, starting, log)
    await starting
  } catch (error) {
    const { isStartedAgain } = its
    const { exitCode, message } = reportFailedStart(error, { log, stateDirectory, isStartedAgain })
    await showFailedStart(message)
    await sleep(failedStarts.add())
    endProcess(exitCode)
  }
  failedStarts.clear()
}

interface FailedStart {
  readonly exitCode: number
  readonly message: string
}

interface ReportOptions extends Pick<Program<ProcessConfig>, 'isStartedAgain'> {
  readonly log: Logger
  readonly stateDirectory: string
}

/** Logs the causes of a failed start, one line for each problem. */
function reportFailedStart(
  error: unknown,
  { log, stateDirectory, isStartedAgain }: ReportOptions,
): FailedStart {
  if (error instanceof ConfigInvalid) {
    const { problems, isOfNamedFiles, message } = error
    for (const problem of problems) log.fatal({ place: problem.place }, problem.message)
    const then =
      isStartedAgain || isOfNamedFiles
        ? '; systemd starts the daemon again within 10 s'
        : `, then: systemctl start ${program.daemon}`
    log.fatal(`correct the configuration, check it with ${program.daemon} --check-config${then}`)
    return { exitCode: isOfNamedFiles ? exitCodes.unusableFile : exitCodes.badConfiguration, message }
  }
  if (isDamage(error)) suspectDatabase(join(stateDirectory, databaseName))
  const known = error instanceof StartError ? error : adviseOnStart(error, stateDirectory)
  if (known) {
    log.fatal(known.message)
    return known
  }
  log.fatal({ err: error }, 'the daemon could not start')
  return { exitCode: exitCodes.failed, message: String(error) }
}

/** Shows the cause in the status line of `systemctl status`. */
async function showFailedStart(message: string): Promise<void> {
  const systemd = createServiceManager({
    runner: createRunner(),
    environment: process.env,
    pid: process.pid,
  })
  const line = message.replaceAll(/\s+/g, ' ').slice(0, 1_000)
  // The journal has it already.
  await systemd.notify(`STATUS=did not start: ${line}`).catch(() => undefined)
}

/** Handles signals and uncaught errors. */
function superviseProcess(daemon: Daemon, starting: Promise<void>, log: Logger): void {
  let isStopping = false
  const stop = (signal: NodeJS.Signals) => {
    // A second signal ends the process at once.
    if (isStopping) endProcess(exitCodes.failed)
    isStopping = true
    log.debug({ signal }, 'stopping')
    starting
      .catch(() => undefined)
      .then(() => daemon.stop())
      .then(
        () => endProcess(exitCodes.ok),
        (error: unknown) => die(error, 'the daemon did not stop cleanly'),
      )
  }
  const die = (error: unknown, message: string) => {
    log.fatal({ err: error }, message)
    endProcess(exitCodes.failed)
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  process.on('SIGHUP', () => {
    daemon
      .reload()
      .catch((error: unknown) =>
        log.error(
          { err: error },
          `the reload failed; correct the cause given in err, then: systemctl reload ${program.daemon}`,
        ),
      )
  })
  process.on('uncaughtException', (error) => die(error, 'uncaught error'))
}
