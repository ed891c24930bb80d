// `system/lasting` is for a command that outlives the daemon. `createLastingRuns` starts it under a name, finds it again by that name, reads its
// lines since a cursor (bytes of the output file), waits for its end and stops it. A run is a folder:
//
// - `order.json`: program, arguments, time limit, the boot in which it was started
// - `input`: standard input, mode 0600; removed by the keeper before the command is started
// - `output`: output of the command, at most 64 MiB; only appended to
// - `exit`: exit code or signal, and the cause of the end; renamed into place when `output` is complete
// - `exit.reserved`: reserves disk space for `exit`
// - `lock`: process id of the keeper
//
// The keeper, `keeper.cjs`, is the parent of the command: a transient unit `edgehostd-run-<name>`, or a session of its own where the daemon is not
// a unit (ADR 19). A run without `exit` whose keeper no longer runs is `gone`.

import { watch, existsSync } from 'node:fs'
import { type FileHandle, readFile, mkdir, open, readdir, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { createAlarm, type Alarm } from '../../base/alarm.ts'
import { createLineSplitter } from '../../base/lines.ts'
import { mostMemoryMiB } from '../bounded-memory.ts'
import type { CommandRunner } from '../runner.ts'
import { type Place, reserved, runFiles, type RunExit, type RunFiles, type RunOrder } from './run-files.ts'
import { setTimeout as delay } from 'node:timers/promises'
import { childOptions, loadExeca } from '../child.ts'
import { readJsonFile, replaceFile } from '../files.ts'
import { createLock } from '../../base/lock.ts'

// Between two reads of the output.
const usualPauseMs = 200
// Checking whether the keeper lives starts a program.
const checkEveryMs = 5_000

/**
 * Hands over the lines of a file that another process appends to.
 * @param exit path of the file `exit`, after which no more output follows
 * @param hasExit whether it exists; cheap
 * @param end the end of the run, also where its keeper died without an `exit`; undefined while it runs
 */
export async function followOutput<T>({
  output,
  exit,
  since,
  onLine,
  hasExit,
  end,
  signal = new AbortController().signal,
  pauseMs = usualPauseMs,
}: {
  output: FileHandle
  exit: string
  since: number
  onLine: (line: string, cursor: number) => void
  hasExit: () => Promise<boolean>
  end: () => Promise<T | undefined>
  signal?: AbortSignal
  pauseMs?: number
}): Promise<T> {
  const alarm = createAlarm(signal, 0)
  const unwatch = ringAt(exit, alarm)
  const splitter = createLineSplitter((line, readBytes) => onLine(line, since + readBytes))
  const chunk = Buffer.allocUnsafe(65_536)
  let position = since
  const readOn = async () => {
    for (;;) {
      const { bytesRead } = await output.read(chunk, 0, chunk.length, position)
      if (bytesRead === 0) return
      position += bytesRead
      splitter.add(chunk.subarray(0, bytesRead))
    }
  }
  try {
    for (let checkAt = 0; ;) {
      signal.throwIfAborted()
      // Checked before the rest is read: after the end of the run no more output is written.
      const isDue = performance.now() >= checkAt
      const ended = isDue || (await hasExit()) ? await end() : undefined
      if (isDue) checkAt = performance.now() + checkEveryMs
      await readOn()
      if (ended !== undefined) {
        splitter.end()
        return ended
      }
      await alarm.pause(pauseMs)
    }
  } finally {
    unwatch()
  }
}

/**
 * Rings when a file is put into its place. If the kernel refuses the watch, the pauses end by themselves.
 * @returns a function that ends it
 */
function ringAt(path: string, alarm: Alarm): () => void {
  try {
    const watcher = watch(dirname(path), (_event, name) => {
      if (name === basename(path)) alarm.ring()
    })
    watcher.on('error', () => watcher.close())
    return () => watcher.close()
  } catch {
    return () => undefined
  }
}

const timeoutMs = 30_000

/**
 * The id of the present boot of a host with systemd, which is different after each boot.
 * @param kernelBoot the kernel's id of this boot
 * @throws Error where systemd does not answer
 */
export async function bootIdOf(runner: CommandRunner, kernelBoot: string): Promise<string> {
  // In a container the kernel's id of the boot can be the machine's; the start time of systemd is the container's own.
  const args = ['show', '--property=UserspaceTimestampMonotonic', '--value']
  const begin = await runner.run('systemctl', args, { timeoutMs })
  if (begin.exitCode !== 0) throw new Error(begin.stderr.trim() || 'systemctl show failed')
  return `${kernelBoot} ${begin.stdout.trim()}`
}

/**
 * Keepers as transient units, outside the sandbox of the daemon and with full rights on the host. systemd refuses a second
 * unit of the same name. Neither systemd-run(1) nor systemctl(1) needs the system bus for this: as root they use systemd's
 * own socket.
 * @param kernelBoot the kernel's id of this boot
 * @param prefix of the names of the units
 * @param transientFolder folder with the file of each transient unit as long as systemd knows the unit, systemd.unit(5)
 */
export function createUnits(
  runner: CommandRunner,
  kernelBoot: () => Promise<string>,
  prefix: string,
  transientFolder = '/run/systemd/transient',
): Place {
  const unitOf = (name: string) => `${prefix}${name}.service`
  // The present boot lasts longer than this process.
  let bootId: string | undefined
  return {
    async launch({ name, command, timeoutMs: longest }) {
      const options = [
        `--unit=${unitOf(name)}`,
        `--description=edgehostd: ${name}`,
        '--collect',
        '--quiet',
        // systemd-run returns once the keeper was executed.
        '--service-type=exec',
        '--property=SyslogIdentifier=edgehostd',
        // SIGTERM goes to the keeper alone, which passes it on; processes that remain after its end are killed.
        '--property=KillMode=mixed',
        '--property=TimeoutStopSec=20',
        // A command and its children may read untrusted input.
        `--property=MemoryMax=${mostMemoryMiB}M`,
        // When the OOM killer ends the command, its keeper records that.
        '--property=OOMPolicy=continue',
        // The keeper enforces the time limit; this one ends a keeper that hangs.
        `--property=RuntimeMaxSec=${Math.ceil(longest / 1_000) + 60}`,
      ]
      // systemd expands $NAME in command lines, systemd.service(5).
      const escaped = command.map((argument) => argument.replaceAll('$', '$$$$'))
      const started = await runner.run('systemd-run', [...options, '--', ...escaped], { timeoutMs })
      if (started.exitCode !== 0) throw new Error(started.stderr.trim() || 'systemd-run failed')
    },
    async findKeeper({ name }) {
      // Most questions are about a unit that is gone, and need no program then.
      if (!existsSync(join(transientFolder, unitOf(name)))) return undefined
      const properties = ['ActiveState', 'MainPID', 'Job']
      const { exitCode, stdout, stderr } = await runner.run(
        'systemctl',
        ['show', `--property=${properties.join(',')}`, unitOf(name)],
        { timeoutMs },
      )
      if (exitCode !== 0) throw new Error(stderr.trim() || 'systemctl show failed')
      const value = (property: string) => new RegExp(`^${property}=(.*)$`, 'm').exec(stdout)?.[1] ?? ''
      const isIdle = ['inactive', 'failed'].includes(value('ActiveState')) && !Number(value('Job'))
      return isIdle ? undefined : Number(value('MainPID'))
    },
    bootId: async () => (bootId ??= await bootIdOf(runner, await kernelBoot())),
    async isEnding() {
      const state = await runner.run('systemctl', ['is-system-running'], { timeoutMs })
      return state.stdout.trim() === 'stopping'
    },
    advice: (name) => `see: journalctl -u ${unitOf(name)}`,
  }
}

/** Longest wait of a keeper for its lock: a process that checks the lock holds it, shared, for a moment. */
const waitSeconds = 2
const held = 9

/**
 * Keepers in sessions of their own, for a daemon that is not a unit. The lock file in the folder of a run refuses a second
 * keeper. The command inherits the lock, so it is held while the keeper or the command runs.
 * @param kernelBoot the kernel's id of this boot
 */
function createSessions(runner: CommandRunner, kernelBoot: () => Promise<string>): Place {
  const sessions: Place = {
    async launch({ name, lock, command }) {
      const execa = await loadExeca()
      const flock = ['--exclusive', `--wait=${waitSeconds}`, `--conflict-exit-code=${held}`, '--no-fork']
      const child = execa('flock', [...flock, lock, ...command], {
        ...childOptions,
        detached: true,
        stdio: 'ignore',
      })
      if (child.pid === undefined)
        throw new Error((await child).shortMessage ?? 'flock(1) could not be started')
      child.nodeChildProcess.unref()
      // The keeper cannot be found until it holds the lock.
      const ended = child.then(() => true)
      const pause = () => delay(10, false)
      while (
        (await sessions.findKeeper({ name, lock })) === undefined &&
        !(await Promise.race([ended, pause()]))
      );
    },
    async findKeeper({ lock }) {
      const { exitCode } = await runner.run(
        'flock',
        ['--shared', '--nonblock', `--conflict-exit-code=${held}`, lock, 'true'],
        { timeoutMs: 10_000 },
      )
      if (exitCode !== held) return undefined
      const pid = Number(await readFile(lock, 'utf8'))
      // The keeper may have been killed while its command holds the lock; its process id may then belong to another process.
      const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
      return commandLine.split('\0').includes(dirname(lock)) ? pid : 0
    },
    bootId: kernelBoot,
    isEnding: () => Promise.resolve(false),
    advice: () => 'run its command by hand to see why',
  }
  return sessions
}

/**
 * End of a run. `gone`: the end of its command is unknown, since the host was or is being shut down (`rebooted`) or
 * something other than `stop` ended its keeper (`vanished`). The output up to then can still be read.
 */
export type RunEnd = RunExit | { readonly kind: 'gone'; readonly reason: 'rebooted' | 'vanished' }

/** A run, found by its name. */
export interface LastingRun {
  readonly program: string
  readonly args: readonly string[]
  /** Milliseconds since 1970. */
  readonly startedAt: number
  /** Undefined while the run lasts. */
  readonly end: RunEnd | undefined
}

export interface LastingRunOptions {
  /** The command gets SIGTERM after this and SIGKILL 10 s later; 1 to 2147483647, which is 24.8 days. */
  readonly timeoutMs: number
  /** Standard input; the only way a secret may reach the command. Without it the command reads end-of-file. */
  readonly input?: string
  /** Beside the fixed environment; never a secret, every user of the host may read it. */
  readonly environment?: Readonly<Record<string, string>>
}

interface RunFollowOptions {
  /** Start position: the `cursor` of the last line that was seen, or 0. */
  readonly since: number
  /**
   * Called with each line as it arrives, without its line end; a line is cut at 64 KiB.
   * @param cursor the position after this line, in bytes; store it together with the results of the line
   */
  readonly onLine: (line: string, cursor: number) => void
  /** Ends the reading, not the run. */
  readonly signal?: AbortSignal
}

/** An operation on a run was refused, with the reason. */
export class RunRefused extends Error {
  override readonly name = 'RunRefused'
  readonly reason: 'bad-name' | 'bad-timeout' | 'running' | 'unknown' | 'not-started' | 'not-ended'

  constructor(reason: RunRefused['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

/** Commands that outlive the process that started them, and are found again by their name. */
export interface LastingRuns {
  /**
   * Starts a command; the files of an ended run of this name are removed.
   * @param name 1 to 64 lower-case letters, digits and hyphens; it does not begin with a hyphen
   * @param program absolute path, or a name looked up in the system folders
   * @param args passed as they are, no shell; never a secret
   * @throws RunRefused while a run of this name lasts; the system's error as it is where its files cannot be written
   */
  start(name: string, program: string, args: readonly string[], options: LastingRunOptions): Promise<void>
  /** Finds a run; undefined where no run of this name is known. */
  find(name: string): Promise<LastingRun | undefined>
  /**
   * Passes on the lines of a run since a cursor, then new ones as they arrive, up to the end of the run.
   * @throws RunRefused where no run of this name is known; the reason of the signal
   */
  follow(name: string, options: RunFollowOptions): Promise<RunEnd>
  /**
   * Ends the command: SIGTERM to its process group, SIGKILL 10 s later.
   * @returns the end of the run, which may be earlier
   */
  stop(name: string): Promise<RunEnd>
  /** Removes the files of an ended run. @throws RunRefused while it lasts */
  remove(name: string): Promise<void>
}

export interface LastingRunsOptions {
  readonly runner: CommandRunner
  /** Folder of the runs; each run has a folder in it. It has to outlive a restart: the state folder, not the runtime folder. */
  readonly folder: string
  /** Path of the keeper, `keeper.cjs`. */
  readonly program: string
  /** Whether the daemon is a unit of systemd: its runs are then units too, and otherwise sessions of their own. */
  readonly asUnits: boolean
  /** Prefix of the names of its units; by default `edgehostd-run-`. */
  readonly unitPrefix?: string
  /** File with the kernel's id of this boot, random(4). */
  readonly bootIdFile?: string
}

const safeName = /^[a-z0-9][a-z0-9-]{0,63}$/
const longestTimeoutMs = 2_147_483_647
const keeperFlags = ['--max-semi-space-size=1', '--max-old-space-size=32']
const usuallyStartedMs = 1_000
const beginsWithinMs = 30_000
const killedWithinMs = 5_000
// SIGUSR2 is for the keeper, which gives its command 10 s to end.
const stopSteps = [
  ['SIGUSR2', 15_000],
  ['SIGKILL', killedWithinMs],
] as const
const pauseMs = 50

/** Lasting runs with their files in folders and their keepers in units or sessions. */
export function createLastingRuns(options: LastingRunsOptions): LastingRuns {
  const { runner, folder, program: keeper, asUnits, unitPrefix = 'edgehostd-run-' } = options
  const { bootIdFile = '/proc/sys/kernel/random/boot_id' } = options
  const kernelBoot = async () => (await readFile(bootIdFile, 'utf8')).trim()
  const place: Place = asUnits
    ? createUnits(runner, kernelBoot, unitPrefix)
    : createSessions(runner, kernelBoot)
  // A run that is being started has its files before its keeper runs: it must not be reported as gone.
  const inTurn = createLock()

  function filesOf(name: string): RunFiles {
    if (safeName.test(name)) return runFiles(join(folder, name))
    const rule = 'use 1 to 64 lower-case letters, digits and hyphens, and begin with a letter or digit'
    throw new RunRefused('bad-name', `a run cannot be named ${JSON.stringify(name)}: ${rule}`)
  }
  const findKeeper = (files: RunFiles) => place.findKeeper({ name: basename(files.folder), lock: files.lock })

  /** @returns undefined while the run lasts */
  async function endOf(files: RunFiles, order: RunOrder): Promise<RunEnd | undefined> {
    const written = () => readJsonFile<RunExit>(files.exit)
    const exit = await written()
    if (exit) return exit
    if ((await findKeeper(files)) !== undefined) return undefined
    // The run may have ended between the two checks.
    const late = await written()
    if (late) return late
    const isRebooted = (await place.bootId()) !== order.bootId || (await place.isEnding())
    return { kind: 'gone', reason: isRebooted ? 'rebooted' : 'vanished' }
  }
  async function refuseWhileRunning(name: string, files: RunFiles): Promise<void> {
    const ended = async () => ((await findKeeper(files)) === undefined ? true : undefined)
    // The keeper runs for a moment after it has written `exit`.
    const hasExit = (await readJsonFile(files.exit)) !== undefined
    if (await within(hasExit ? killedWithinMs : 0, ended)) return
    throw new RunRefused('running', `the run ${name} is still running; wait for its end or stop it`)
  }
  const known = (name: string) =>
    inTurn(async () => {
      const files = filesOf(name)
      const order = await readJsonFile<RunOrder>(files.order)
      if (!order) throw new RunRefused('unknown', `no run named ${name} is known`)
      return { files, order }
    })
  async function signalKeeper(files: RunFiles, signal: NodeJS.Signals): Promise<void> {
    const pid = await findKeeper(files)
    try {
      if (pid) process.kill(pid, signal)
    } catch (error) {
      // The keeper has just ended.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
  /** Calls `ask` repeatedly until it returns a value. @returns undefined when the time is over */
  async function within<T>(timeoutMs: number, ask: () => Promise<T | undefined>): Promise<T | undefined> {
    const until = performance.now() + timeoutMs
    for (;;) {
      const answer = await ask()
      if (answer !== undefined || performance.now() > until) return answer
      await delay(pauseMs)
    }
  }

  async function write(files: RunFiles, order: RunOrder, input: string | undefined): Promise<void> {
    await mkdir(files.folder, { recursive: true, mode: 0o700 })
    // Not the lock: its holder has this file open.
    const former = (await readdir(files.folder)).filter((name) => name !== basename(files.lock))
    await Promise.all(former.map((name) => rm(join(files.folder, name), { recursive: true })))
    const mode = { mode: 0o600 }
    if (input !== undefined) await writeFile(files.input, input, mode)
    await writeFile(files.output, '', mode)
    for (const path of [files.reserve, files.lock])
      await writeFile(path, reserved(), { ...mode, flush: true })
    await replaceFile(files.order, JSON.stringify(order), 0o600)
  }

  /** Waits until the keeper has written its process id, or has ended. */
  async function started(name: string, files: RunFiles): Promise<void> {
    const hasStarted = async () => Number(await readFile(files.lock, 'utf8')) > 0 || undefined
    // A search for the keeper may start a program, which would slow down the start of the keeper itself.
    if (await within(usuallyStartedMs, hasStarted)) return
    const ended = async () => (await hasStarted()) ?? ((await findKeeper(files)) === undefined || undefined)
    await within(beginsWithinMs, ended)
    if (await hasStarted()) return
    throw new RunRefused('not-started', `the run ${name} did not begin; ${place.advice(name)}`)
  }

  return {
    start: (name, program, args, { timeoutMs, input, environment = {} }) =>
      inTurn(async () => {
        const files = filesOf(name)
        if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > longestTimeoutMs)
          throw new RunRefused(
            'bad-timeout',
            `timeoutMs of the run ${name} must be an integer from 1 to ${longestTimeoutMs}`,
          )
        await refuseWhileRunning(name, files)
        const bootId = await place.bootId()
        const order = { program, args, environment, timeoutMs, bootId, startedAt: Date.now() }
        try {
          await write(files, order, input)
          const command = [process.execPath, ...keeperFlags, keeper, files.folder]
          await place.launch({ name, lock: files.lock, command, timeoutMs })
          await started(name, files)
        } catch (error) {
          const lives = (await findKeeper(files).catch(() => 0)) !== undefined
          if (!lives) await rm(files.folder, { recursive: true, force: true })
          throw error
        }
      }),

    find: (name) =>
      inTurn(async () => {
        const files = filesOf(name)
        const order = await readJsonFile<RunOrder>(files.order)
        if (!order) return undefined
        const end = await endOf(files, order)
        // The keeper of a run that never started has not removed the input.
        if (end) await rm(files.input, { force: true })
        return { program: order.program, args: order.args, startedAt: order.startedAt, end }
      }),

    async follow(name, { since, onLine, signal }) {
      const { files, order } = await known(name)
      const output = await open(files.output, 'r')
      try {
        return await followOutput({
          output,
          exit: files.exit,
          since,
          onLine,
          hasExit: async () => (await readJsonFile(files.exit)) !== undefined,
          end: () => inTurn(() => endOf(files, order)),
          ...(signal ? { signal } : {}),
        })
      } finally {
        await output.close()
      }
    },

    async stop(name) {
      const { files, order } = await known(name)
      const ended = () => inTurn(() => endOf(files, order))
      let end = await ended()
      for (const [signal, timeoutMs] of stopSteps) {
        if (end) break
        await signalKeeper(files, signal)
        end = await within(timeoutMs, ended)
      }
      if (!end) throw new RunRefused('not-ended', `the run ${name} did not end; ${place.advice(name)}`)
      return end
    },

    remove: (name) =>
      inTurn(async () => {
        const files = filesOf(name)
        await refuseWhileRunning(name, files)
        await rm(files.folder, { recursive: true, force: true })
      }),
  }
}
