import { setPriority } from 'node:os'
import { Readable, type Writable } from 'node:stream'
import type { Options, execa as Execa } from 'execa'

/** What every program that is run once may be given. */
export interface ChildOptions {
  /** The program gets SIGTERM after this and SIGKILL a second later; 1 to 2147483647, which is 24.8 days. */
  readonly timeoutMs: number
  /**
   * Standard input; the only way a secret may reach a program. Texts that come one after the other are handed on as they
   * come. Without it the program reads end-of-file.
   */
  readonly input?: string | AsyncIterable<string>
  /** Its nice value, 1 to 19, for what stands back behind the daemon where both want a processor; see nice(1). */
  readonly niceness?: number
  /** Told the process id as soon as there is one. */
  readonly onStarted?: (pid: number) => void
  /** Ends the program, as the time does. */
  readonly signal?: AbortSignal
  /** Beside the fixed environment; never a secret, every user of the host may read it. */
  readonly environment?: Readonly<Record<string, string>>
}

/** What every program gets: nothing of our own environment, and English, since output is parsed. */
export const childEnvironment = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C', LANG: 'C' } as const

/** How every child of the daemon is started. */
export const childOptions = {
  // Else execa would catch the daemon's signals: a running child would take our SIGTERM for its own, and a daemon that
  // stands still would wake up for the watchdog's SIGABRT and take a connection with it.
  cleanup: false,
  shell: false,
  reject: false,
  // A hostile PATH, LD_PRELOAD or NODE_OPTIONS of the daemon must not reach a child.
  extendEnv: false,
  env: childEnvironment,
  cwd: '/',
} as const

const killAfterMs = 1_000

// When the first program is started, which is after the daemon has answered its first request.
export const loadExeca = async () => (loaded ??= (await import('execa')).execa)
let loaded: typeof Execa | undefined

/**
 * Starts a program that is run once.
 * @param output what is done with its output, in the words of execa
 * @returns the child, and its result, which waits for its pipes for no longer than a second after it was ended
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
  if (niceness !== undefined && child.pid !== undefined) giveWay(child.pid, niceness)
  if (child.pid !== undefined) onStarted?.(child.pid)
  const texts = typeof input === 'object' ? feed(input, child.stdin) : undefined
  const stopWatching = boundPipes([child.stdout, child.stderr], timeoutMs, signal)
  const result = child.finally(() => {
    stopWatching()
    texts?.destroy()
  })
  return { child, result }
}

/**
 * Closes the pipes of a program a second after it was ended, by its time, by its signal or for its output: a child that it
 * left behind may hold their other ends, and execa waits for that.
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
  // execa destroys the one that said too much.
  for (const pipe of pipes) pipe?.once('close', () => pipe.readableAborted && closeSoon())
  return () => {
    clearTimeout(timer)
    signal?.removeEventListener('abort', closeSoon)
  }
}

const longestDelayMs = 2 ** 31 - 1

function giveWay(pid: number, niceness: number): void {
  try {
    setPriority(pid, niceness)
  } catch {
    // It has come to its end already, or stands back further than that.
  }
}

/**
 * Says each text as it comes, to a program that does not have to hear all of it. execa's own way of doing that waits for
 * the next text when the program has ended.
 */
function feed(texts: AsyncIterable<string>, stdin: Writable | null): Readable {
  const source = Readable.from(texts).on('error', () => undefined)
  stdin?.on('error', () => undefined)
  if (stdin) source.pipe(stdin)
  return source
}
