import { mkdir, open, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { replaceFile } from '../files.ts'
import type { CommandRunner } from '../runner.ts'
import { serialize } from '../../base/serialize.ts'
import { followOutput } from './follow-output.ts'
import type { Place } from './place.ts'
import { readJson, reserved, runFiles, type RunExit, type RunFiles, type RunOrder } from './run-files.ts'
import { createSessions } from './sessions.ts'
import { createUnits } from './units.ts'

/**
 * How a run ended. `gone`: how its command ended is unknown, since the host was or is being shut down (`rebooted`) or
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

export interface RunFollowOptions {
  /** Where to begin: the `cursor` of the last line that was seen, or 0. */
  readonly since: number
  /**
   * Called with each line as it arrives, without its line end; a line is cut at 64 KiB.
   * @param cursor the position after this line, in bytes; store it together with what is made of the line
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
   * @returns how the run ended; it may have ended before
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
  /** What the names of its units begin with; by default `edgehostd-run-`. */
  readonly unitPrefix?: string
  /** File with the kernel's id of this boot, random(4). */
  readonly bootIdFile?: string
}

const safeName = /^[a-z0-9][a-z0-9-]{0,63}$/
const longestTimeoutMs = 2_147_483_647
const keeperFlags = ['--max-semi-space-size=1', '--max-old-space-size=32']
const usuallyBegunMs = 1_000
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
  const inTurn = serialize()

  function filesOf(name: string): RunFiles {
    if (safeName.test(name)) return runFiles(join(folder, name))
    const rule = 'use 1 to 64 lower-case letters, digits and hyphens, and begin with a letter or digit'
    throw new RunRefused('bad-name', `a run cannot be named ${JSON.stringify(name)}: ${rule}`)
  }
  const findKeeper = (files: RunFiles) => place.findKeeper({ name: basename(files.folder), lock: files.lock })

  /** @returns undefined while the run lasts */
  async function endOf(files: RunFiles, order: RunOrder): Promise<RunEnd | undefined> {
    const written = () => readJson<RunExit>(files.exit)
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
    const hasExit = (await readJson(files.exit)) !== undefined
    if (await within(hasExit ? killedWithinMs : 0, ended)) return
    throw new RunRefused('running', `the run ${name} is still running; wait for its end or stop it`)
  }
  const known = (name: string) =>
    inTurn(async () => {
      const files = filesOf(name)
      const order = await readJson<RunOrder>(files.order)
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
  async function begun(name: string, files: RunFiles): Promise<void> {
    const hasBegun = async () => Number(await readFile(files.lock, 'utf8')) > 0 || undefined
    // A search for the keeper may start a program, which would slow down the start of the keeper itself.
    if (await within(usuallyBegunMs, hasBegun)) return
    const ended = async () => (await hasBegun()) ?? ((await findKeeper(files)) === undefined || undefined)
    await within(beginsWithinMs, ended)
    if (await hasBegun()) return
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
          await begun(name, files)
        } catch (error) {
          const lives = (await findKeeper(files).catch(() => 0)) !== undefined
          if (!lives) await rm(files.folder, { recursive: true, force: true })
          throw error
        }
      }),

    find: (name) =>
      inTurn(async () => {
        const files = filesOf(name)
        const order = await readJson<RunOrder>(files.order)
        if (!order) return undefined
        const end = await endOf(files, order)
        // The keeper of a run that never began has not removed the input.
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
          hasExit: async () => (await readJson(files.exit)) !== undefined,
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
