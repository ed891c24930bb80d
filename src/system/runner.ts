// `system` starts every program, in three forms. `runner.run` runs a program to its end and returns its output; `runner.stream` runs one to its end
// and passes on its lines as they arrive; `follower.follow` keeps one running. All get a fixed environment, no shell, and secrets only by standard
// input. Programs of others that read untrusted input (helm, kubeadm, kubectl) are run through `createBoundedRunner` (`bounded-memory.ts`),
// which bounds its memory and says when one reached the bound or was not started: `ProgramUnusable` then, never a fault of the definition.
// execa limits time, output and input. A second after a program was ended its pipes are closed, since a child of it may keep them open
// (`system/child.ts`).

import { startChild, type ChildOptions } from './child.ts'
import { createLineSplitter, createTail } from '../base/lines.ts'
import type { Logger } from './log.ts'

/** End of a command. A non-zero exit code is data, not an error. */
export interface CommandResult {
  /** Exit code, or undefined when a signal ended the program. */
  readonly exitCode: number | undefined
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions extends ChildOptions {
  /** Reads standard error only; standard output is discarded. */
  readonly onlyErrors?: boolean
  /** Most bytes of each output stream; a program that writes more is ended. */
  readonly maxOutputBytes?: number
}

/** The program could not be run to its end: not found, timed out, too much output or memory, or ended by the caller's signal. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed'
  readonly program: string
  readonly reason: 'not-started' | 'timed-out' | 'output-too-large' | 'too-much-memory' | 'ended'
  /** Detail of the reason; of a bounded program, the end of a sentence after its name. */
  readonly detail: string

  constructor(
    program: string,
    reason: CommandFailed['reason'],
    detail: string,
    message = `${program}: ${reason}${detail ? ` (${detail})` : ''}`,
  ) {
    super(message)
    this.program = program
    this.reason = reason
    this.detail = detail
  }
}

/** End of a streamed command. */
export interface StreamResult {
  /** Exit code, or undefined when a signal ended the program. */
  readonly exitCode: number | undefined
  /** The signal that ended the program, for example `SIGKILL`. */
  readonly signal: string | undefined
  /** Its last lines, of standard output and standard error in the order of their arrival. */
  readonly tail: string
}

export interface StreamOptions extends ChildOptions {
  /**
   * Called with each line as it arrives, without its line end; a line is cut at 64 KiB.
   * @param from the output that the program wrote the line to
   */
  readonly onLine: (line: string, from: 'stdout' | 'stderr') => void
  /** Most characters of `tail`. */
  readonly tailLength?: number
}

/** Programs that are run to their end, with each line of output passed on as it arrives. */
export interface CommandStreamer {
  /**
   * Runs a program to its end, however much it writes.
   * @param program absolute path, or a name looked up in the system folders
   * @param args passed as they are, no shell
   * @throws CommandFailed when it could not be run to its end
   */
  stream(program: string, args: readonly string[], options: StreamOptions): Promise<StreamResult>
}

/** Programs that are run to their end. */
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
 * @param log gets a line at level debug for every program that is started
 */
export function createRunner(log?: Logger): CommandRunner & CommandStreamer {
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
    async stream(program, args, { onLine, tailLength = 16_384, ...options }) {
      log?.debug({ program }, 'a program is started')
      const { child, result } = await startChild(program, args, options, { buffer: false })
      const tail = createTail(tailLength)
      const splitters = (['stdout', 'stderr'] as const).map((from) => {
        const splitter = createLineSplitter((line) => {
          tail.add(line)
          onLine(line, from)
        })
        child[from].on('data', splitter.add)
        return splitter
      })
      const ended = await result
      for (const splitter of splitters) splitter.end()
      throwUnlessEnded(program, ended, options)
      return { exitCode: ended.exitCode, signal: ended.signal, tail: tail.text() }
    },
  }
}

const textOf = (bytes: unknown) => (bytes instanceof Uint8Array ? Buffer.from(bytes).toString() : '')

/** The fields of execa's result that show whether a program ran to its end. */
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
  // EPIPE on stdin is no failure: a program need not read its input. Any other result without an exit is a failed start.
  if (result.exitCode === undefined && result.signal === undefined)
    throw new CommandFailed(program, 'not-started', result.code ?? '')
}
