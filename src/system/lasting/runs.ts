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
 * How a run ended. `gone`: there is no word of how its command ended, since the host went or goes down (`rebooted`) or something
 * else than `stop` ended its keeper (`vanished`). What the command had said by then can be read.
 */
export type RunEnd = RunExit | { readonly kind: 'gone'; readonly reason: 'rebooted' | 'vanished' }

/** A run as it is known by its name. */
export interface LastingRun {
  readonly program: string
  readonly args: readonly string[]
  /** Milliseconds since 1970. */
  readonly startedAt: number
  /** Undefined while it runs. */
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
   * One line as it comes, without its end; of one of more than 64 KiB the rest is left out.
   * @param cursor behind this line, in bytes; to be kept together with what becomes of the line
   */
  readonly onLine: (line: string, cursor: number) => void
  /** Ends the reading, not the run. */
  readonly signal?: AbortSignal
}

/** Why a verb was refused. */
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
   * Starts a command once; what an ended run of this name left is removed.
   * @param name 1 to 64 lower-case letters, digits and hyphens, the first no hyphen
   * @param program absolute path, or a name looked up in the system folders
   * @param args passed as they are, no shell; never a secret
   * @throws RunRefused while one of this name runs; the system's error as it is where its files cannot be written
   */
  start(name: string, program: string, args: readonly string[], options: LastingRunOptions): Promise<void>
  /** What is known of a run; undefined where nothing is. */
  find(name: string): Promise<LastingRun | undefined>
  /**
   * Hands over the lines of a run since a cursor, then those that come, up to its end.
   * @throws RunRefused where no such run is known; the reason of the signal
   */
  follow(name: string, options: RunFollowOptions): Promise<RunEnd>
  /**
   * Ends the command: SIGTERM to all of its group, SIGKILL 10 s later.
   * @returns how the run ended, or had ended before
   */
  stop(name: string): Promise<RunEnd>
  /** Removes what an ended run left. @throws RunRefused while it runs */
  remove(name: string): Promise<void>
}

export interface LastingRunsOptions {
  readonly runner: CommandRunner
  /** A folder of each run is made in it. It has to outlive a restart: the state folder, not the runtime folder. */
  readonly folder: string
  /** Path of the keeper, `keeper.cjs`. */
  readonly program: string
  /** The daemon is a unit of systemd itself: then the runs are units too, else sessions of their own. */
  readonly asUnits: boolean
  /** Where the kernel says which boot this is, random(4). */
  readonly bootIdFile?: string
}

const safeName = /^[a-z0-9][a-z0-9-]{0,63}$/
const longestTimeoutMs = 2_147_483_647
const keeperFlags = ['--max-semi-space-size=1', '--max-old-space-size=32']
const beginsWithinMs = 30_000
const killedWithinMs = 5_000
// The first is the keeper's, which then gives its command 10 s.
const stopSteps = [
  ['SIGUSR2', 15_000],
  ['SIGKILL', killedWithinMs],
] as const
const pauseMs = 50

/** Keeps runs in folders, by keepers that live in units or sessions. */
export function createLastingRuns(options: LastingRunsOptions): LastingRuns {
  const { runner, folder, program: keeper, asUnits, bootIdFile = '/proc/sys/kernel/random/boot_id' } = options
  const kernelBoot = async () => (await readFile(bootIdFile, 'utf8')).trim()
  const place: Place = asUnits ? createUnits(runner, kernelBoot) : createSessions(runner, kernelBoot)
  // One that is being started has its files before its keeper lives: it must not be taken for one that is gone.
  const inTurn = serialize()

  function filesOf(name: string): RunFiles {
    if (safeName.test(name)) return runFiles(join(folder, name))
    const rule = '1 to 64 lower-case letters, digits and hyphens, the first no hyphen'
    throw new RunRefused('bad-name', `a run cannot be named ${JSON.stringify(name)}: ${rule}`)
  }
  const look = (files: RunFiles) => place.look({ name: basename(files.folder), lock: files.lock })

  /** @returns undefined while it runs */
  async function endOf(files: RunFiles, order: RunOrder): Promise<RunEnd | undefined> {
    const written = () => readJson<RunExit>(files.exit)
    const exit = await written()
    if (exit) return exit
    if ((await look(files)) !== undefined) return undefined
    // It may have ended while we looked.
    const late = await written()
    if (late) return late
    const boot = await place.boot()
    return { kind: 'gone', reason: boot.isEnding || boot.id !== order.bootId ? 'rebooted' : 'vanished' }
  }
  async function refuseWhileRunning(name: string, files: RunFiles): Promise<void> {
    const ended = async () => ((await look(files)) === undefined ? true : undefined)
    // The keeper lives a moment longer than its run.
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
    const pid = await look(files)
    try {
      if (pid) process.kill(pid, signal)
    } catch (error) {
      // It has just ended.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
  /** Waits for a while. @returns undefined where it is still undefined then */
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
    // Not the lock: its holder has this very file open.
    const former = (await readdir(files.folder)).filter((name) => name !== basename(files.lock))
    await Promise.all(former.map((name) => rm(join(files.folder, name), { recursive: true })))
    const mode = { mode: 0o600 }
    if (input !== undefined) await writeFile(files.input, input, mode)
    await writeFile(files.output, '', mode)
    for (const path of [files.reserve, files.lock])
      await writeFile(path, reserved(), { ...mode, flush: true })
    await replaceFile(files.order, JSON.stringify(order), 0o600)
  }

  /** Waits until the keeper has written its process id down, or has ended. */
  async function begun(name: string, files: RunFiles): Promise<void> {
    const state = await within(beginsWithinMs, async () => {
      if (Number(await readFile(files.lock, 'utf8')) > 0) return 'begun'
      return (await look(files)) === undefined ? 'ended' : undefined
    })
    if (state === 'begun' || Number(await readFile(files.lock, 'utf8')) > 0) return
    throw new RunRefused('not-started', `the run ${name} did not begin; ${place.advice(name)}`)
  }

  return {
    start: (name, program, args, { timeoutMs, input, environment = {} }) =>
      inTurn(async () => {
        const files = filesOf(name)
        if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > longestTimeoutMs)
          throw new RunRefused('bad-timeout', `timeoutMs of the run ${name}: 1 to ${longestTimeoutMs}`)
        await refuseWhileRunning(name, files)
        const { id: bootId } = await place.boot()
        const order = { program, args, environment, timeoutMs, bootId, startedAt: Date.now() }
        try {
          await write(files, order, input)
          const command = [process.execPath, ...keeperFlags, keeper, files.folder]
          await place.launch({ name, lock: files.lock, command, timeoutMs })
          await begun(name, files)
        } catch (error) {
          const lives = (await look(files).catch(() => 0)) !== undefined
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
        // One that never began has left it.
        if (end) await rm(files.input, { force: true })
        return { program: order.program, args: order.args, startedAt: order.startedAt, end }
      }),

    async follow(name, { since, onLine, signal }) {
      const { files, order } = await known(name)
      const output = await open(files.output, 'r')
      try {
        return await followOutput({
          output,
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
