import { setPriority } from 'node:os'
import { Readable, type Writable } from 'node:stream'
import type { execa as Execa } from 'execa'
import { limitOutput, limitTime } from './child-limits.ts'
import type { Logger } from './log.ts'

/** How a command ended. A non-zero exit code is data, not an error. */
export interface CommandResult {
  /** Exit code, or undefined when a signal ended the program. */
  readonly exitCode: number | undefined
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  /** The program gets SIGTERM after this and SIGKILL a second later. */
  readonly timeoutMs: number
  /**
   * Standard input; the only way a secret may reach a program. Texts that come one after the other are handed on as they
   * come. Without it the program reads end-of-file.
   */
  readonly input?: string | AsyncIterable<string>
  /** Only errors are read; what the program says on standard output goes nowhere. */
  readonly onlyErrors?: boolean
  /** Its nice value, 1 to 19, for what stands back behind the daemon where both want a processor; see nice(1). */
  readonly niceness?: number
  /** Told the process id as soon as there is one. */
  readonly onStarted?: (pid: number) => void
  /** Ends the program, as the time does. */
  readonly signal?: AbortSignal
  /** Most bytes of each output stream; a program that writes more is ended, and nobody reads on. */
  readonly maxOutputBytes?: number
  /** Beside the fixed environment; never a secret, every user of the host may read it. */
  readonly environment?: Readonly<Record<string, string>>
}

/** The program could not be run to its end: not found, timed out, too much output, ended by whoever started it. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed'
  readonly program: string
  readonly reason: 'not-started' | 'timed-out' | 'output-too-large' | 'ended'

  constructor(program: string, reason: CommandFailed['reason'], detail: string) {
    super(`${program}: ${reason}${detail ? ` (${detail})` : ''}`)
    this.program = program
    this.reason = reason
  }
}

/** The only way the daemon starts a program. */
export interface CommandRunner {
  /**
   * Runs a program to its end.
   * @param program absolute path, or a name looked up in the system folders
   * @param args passed as they are, no shell
   * @throws CommandFailed when it could not be run to its end
   */
  run(program: string, args: readonly string[], options: RunOptions): Promise<CommandResult>
}

/** How every child of the daemon is started. */
export const childOptions = {
  // Else execa would catch the daemon's signals: a running child would take our SIGTERM for its own, and a daemon that
  // stands still would wake up for the watchdog's SIGABRT and take a connection with it.
  cleanup: false,
  shell: false,
  reject: false,
  // Nothing is inherited: a hostile PATH, LD_PRELOAD or NODE_OPTIONS of the daemon must not reach a child,
  // and output is parsed, so its language is fixed.
  extendEnv: false,
  env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C', LANG: 'C' },
  cwd: '/',
} as const

const killAfterMs = 1_000

// When the first program is started, which is after the daemon has answered its first request.
export const loadExeca = async () => (loaded ??= (await import('execa')).execa)
let loaded: typeof Execa | undefined

/**
 * Runs programs of this machine through execa.
 * @param log told at level debug of every program that is started
 */
export function createRunner(log?: Logger): CommandRunner {
  return {
    async run(program, args, options) {
      const {
        timeoutMs,
        input,
        signal,
        environment,
        niceness,
        onlyErrors,
        onStarted,
        maxOutputBytes = 1_048_576,
      } = options
      const execa = await loadExeca()
      log?.debug({ program }, 'a program is started')
      const child = execa(program, args, {
        ...childOptions,
        env: { ...childOptions.env, ...environment },
        forceKillAfterDelay: killAfterMs,
        buffer: false,
        ...(input === undefined ? { stdin: 'ignore' } : {}),
        stdout: onlyErrors === true ? 'ignore' : 'pipe',
        ...(signal === undefined ? {} : { cancelSignal: signal }),
      })
      if (niceness !== undefined && child.pid !== undefined) giveWay(child.pid, niceness)
      if (child.pid !== undefined) onStarted?.(child.pid)
      // Not by execa's own option, which makes a stream of it: a login waits for that.
      if (typeof input === 'string') child.stdin?.end(input)
      const texts = typeof input === 'object' ? feed(input, child.stdin) : undefined
      const output = limitOutput(child, maxOutputBytes)
      const time = limitTime(child, timeoutMs, killAfterMs)
      const result = await child.finally(() => {
        time.stop()
        texts?.destroy()
      })
      if (result.isCanceled) throw new CommandFailed(program, 'ended', '')
      if (output.isTooMuch()) throw new CommandFailed(program, 'output-too-large', `${maxOutputBytes} bytes`)
      if (time.isUp()) throw new CommandFailed(program, 'timed-out', `${timeoutMs} ms`)
      // EPIPE on stdin is the program's right not to read; anything else without an exit is a failed start.
      if (result.exitCode === undefined && result.signal === undefined) {
        throw new CommandFailed(program, 'not-started', result.code ?? '')
      }
      return {
        exitCode: result.exitCode,
        stdout: output.stdout(),
        stderr: output.stderr(),
      }
    },
  }
}

function giveWay(pid: number, niceness: number): void {
  try {
    setPriority(pid, niceness)
  } catch {
    // It has come to its end already, or stands back further than that.
  }
}

/** Says each text as it comes, to a program that does not have to hear all of it. */
function feed(texts: AsyncIterable<string>, stdin: Writable | null): Readable {
  const source = Readable.from(texts).on('error', () => undefined)
  stdin?.on('error', () => undefined)
  if (stdin) source.pipe(stdin)
  return source
}
