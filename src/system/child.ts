import { setPriority } from 'node:os'
import type { Readable, Writable } from 'node:stream'
import type { Options, execa as Execa } from 'execa'

/** Options of every program that is run once. */
export interface ChildOptions {
  /** The program gets SIGTERM after this and SIGKILL a second later; 1 to 2147483647, which is 24.8 days. */
  readonly timeoutMs: number
  /**
   * Standard input; the only way a secret may reach a program. Without input the program reads end-of-file. An iterable
   * is written piece by piece: the next piece is requested when the operating system has the previous one, whose bytes
   * may then be reused. If the iterable fails, the program reads end-of-file.
   */
  readonly input?: string | AsyncIterable<string | Uint8Array>
  /** Its nice value, 1 to 19, for a program that should yield the processor to the daemon; see nice(1). */
  readonly niceness?: number
  /** Called with the process id as soon as it is known. */
  readonly onStarted?: (pid: number) => void
  /** Ends the program in the same way as its time limit. */
  readonly signal?: AbortSignal
  /** Added to the fixed environment; never a secret, since every user of the host may read it. */
  readonly environment?: Readonly<Record<string, string>>
}

/** The environment of every program: nothing of the daemon's own, and English messages, since output is parsed. */
export const childEnvironment = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C', LANG: 'C' } as const

/** Options with which every child of the daemon is started. */
export const childOptions = {
  // Otherwise execa would catch the daemon's signals: SIGTERM of the daemon would end a running child, and a hung daemon
  // would handle the watchdog's SIGABRT instead of dying by it at once.
  cleanup: false,
  shell: false,
  reject: false,
  // A hostile PATH, LD_PRELOAD or NODE_OPTIONS of the daemon must not reach a child.
  extendEnv: false,
  env: childEnvironment,
  cwd: '/',
} as const

const killAfterMs = 1_000

/** Loads execa when the first program is started, which is after the daemon has answered its first request. */
export const loadExeca = async () => (loaded ??= (await import('execa')).execa)
let loaded: typeof Execa | undefined

/**
 * Starts a program that is run once.
 * @param output the options of execa for the program's output
 * @returns the child, and its result; after the program was ended, the result waits at most one more second for its pipes
 */
export async function startChild<T extends Options>(
  program: string,
  args: readonly string[],
  options: ChildOptions,
  output: T,
) {
  const { timeoutMs, input, niceness, onStarted, signal, environment } = options
  const execa = await loadExeca()
  const child = execa(program, args, {
    ...childOptions,
    env: { ...childEnvironment, ...environment },
    forceKillAfterDelay: killAfterMs,
    timeout: timeoutMs,
    ...(typeof input === 'string' ? { input } : { stdin: input ? 'pipe' : 'ignore' }),
    ...(signal ? { cancelSignal: signal } : {}),
    ...output,
  })
  if (niceness !== undefined && child.pid !== undefined) setNiceness(child.pid, niceness)
  if (child.pid !== undefined) onStarted?.(child.pid)
  const stopFeeding = typeof input === 'object' ? feed(input, child.stdin) : undefined
  const stopWatching = boundPipes([child.stdout, child.stderr], timeoutMs, signal)
  const result = child.finally(() => {
    stopWatching()
    stopFeeding?.()
  })
  return { child, result }
}

/**
 * Closes the pipes of a program a second after it was ended by its time limit, by its signal or for too much output. A
 * child that the program left behind may hold the other ends of the pipes, and execa would wait for that child.
 */
function boundPipes(pipes: readonly (Readable | null)[], timeoutMs: number, signal?: AbortSignal) {
  const close = () => pipes.forEach((pipe) => pipe?.destroy())
  let timer = setTimeout(close, Math.min(timeoutMs + killAfterMs, longestDelayMs))
  const closeSoon = () => {
    clearTimeout(timer)
    timer = setTimeout(close, killAfterMs)
  }
  if (signal?.aborted) closeSoon()
  signal?.addEventListener('abort', closeSoon)
  // execa destroys the pipe that carried too much output.
  for (const pipe of pipes) pipe?.once('close', () => pipe.readableAborted && closeSoon())
  return () => {
    clearTimeout(timer)
    signal?.removeEventListener('abort', closeSoon)
  }
}

const longestDelayMs = 2 ** 31 - 1

function setNiceness(pid: number, niceness: number): void {
  try {
    setPriority(pid, niceness)
  } catch {
    // The program has already ended, or has a higher nice value.
  }
}

/**
 * Writes each piece to a program as it is yielded; the program need not read all of them. execa's own way to do this waits
 * for the next piece even when the program has ended.
 * @returns a function that asks for no more pieces; for the end of the program
 */
function feed(pieces: AsyncIterable<string | Uint8Array>, stdin: Writable | null): () => void {
  const iterator = pieces[Symbol.asyncIterator]()
  // Reported to `write` too.
  stdin?.on('error', () => undefined)
  const write = (piece: string | Uint8Array) =>
    new Promise<void>((resolve, reject) => {
      stdin?.write(piece, (error) => (error ? reject(error) : resolve()))
    })
  const run = async () => {
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) await write(next.value)
    stdin?.end()
  }
  const stop = () => {
    stdin?.destroy()
    // An iterable that waits for its own source gets this when it yields again.
    iterator.return?.().catch(() => undefined)
  }
  // The iterable has failed, or the program reads no more.
  run().catch(stop)
  return stop
}
