import { startChild, type ChildOptions } from './child.ts'
import type { Logger } from './log.ts'

/** How a command ended. A non-zero exit code is data, not an error. */
export interface CommandResult {
  /** Exit code, or undefined when a signal ended the program. */
  readonly exitCode: number | undefined
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions extends ChildOptions {
  /** Only errors are read; what the program says on standard output goes nowhere. */
  readonly onlyErrors?: boolean
  /** Most bytes of each output stream; a program that writes more is ended. */
  readonly maxOutputBytes?: number
}

/** The program could not be run to its end: not found, timed out, too much output, ended by its signal. */
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

/**
 * Runs programs of this machine through execa.
 * @param log told at level debug of every program that is started
 */
export function createRunner(log?: Logger): CommandRunner {
  return {
    async run(program, args, { onlyErrors = false, maxOutputBytes = 1_048_576, ...options }) {
      log?.debug({ program }, 'a program is started')
      const { result } = await startChild(program, args, options, {
        stdout: onlyErrors ? 'ignore' : 'pipe',
        encoding: 'buffer',
        maxBuffer: maxOutputBytes,
        stripFinalNewline: false,
      })
      const ended = await result
      if (ended.isMaxBuffer) throw new CommandFailed(program, 'output-too-large', `${maxOutputBytes} bytes`)
      throwUnlessEnded(program, ended, options)
      return { exitCode: ended.exitCode, stdout: textOf(ended.stdout), stderr: textOf(ended.stderr) }
    },
  }
}

const textOf = (bytes: unknown) => (bytes instanceof Uint8Array ? Buffer.from(bytes).toString() : '')

/** What of execa's result says whether a program came to its end. */
interface Ended {
  readonly isCanceled: boolean
  readonly timedOut: boolean
  readonly exitCode?: number | undefined
  readonly signal?: string | undefined
  readonly code?: string | undefined
}

function throwUnlessEnded(program: string, result: Ended, { timeoutMs }: ChildOptions): void {
  if (result.isCanceled) throw new CommandFailed(program, 'ended', '')
  if (result.timedOut) throw new CommandFailed(program, 'timed-out', `${timeoutMs} ms`)
  // EPIPE on stdin is the program's right not to read; anything else without an exit is a failed start.
  if (result.exitCode === undefined && result.signal === undefined)
    throw new CommandFailed(program, 'not-started', result.code ?? '')
}
