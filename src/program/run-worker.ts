import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import type { Logger } from '../system/log.ts'
import type { CommandResult, CommandRunner, RunOptions } from '../system/runner.ts'
import type { Refused } from './worker.ts'

export interface WorkerOptions {
  readonly runner: CommandRunner
  /** Path of a program of this package that answers as `worker.ts` does. */
  readonly program: string
  readonly log: Logger
}

/** Bounds of one run, and its input. */
export interface WorkerRun extends RunOptions {
  /** Old space of V8. */
  readonly memoryMiB: number
  /** `--max-semi-space-size` of V8, MiB. */
  readonly semiSpaceMiB: number
  /** The error for more memory than that. */
  readonly tooMuch: () => AppError
}

// V8 calls abort(3) where it lacks memory, and says so; the kernel sends SIGKILL, as another program may. Neither gives an exit code.
const outOfMemory = /out of memory|allocation failed/i
const isKilled = ({ exitCode }: CommandResult) => exitCode === undefined || exitCode > 128

/**
 * Runs a program that does work of the daemon in a process of its own.
 * @returns its finding
 * @throws AppError for its refusal; `tooMuch()`; NotReady for a process that was killed; the reason of the signal; CommandFailed; an Error
 * if the program failed, which is logged
 */
export async function runWorker<Finding extends object>(
  { runner, program, log }: WorkerOptions,
  { memoryMiB, semiSpaceMiB, tooMuch, ...options }: WorkerRun,
): Promise<Exclude<Finding, { readonly refused: Refused }>> {
  const args = [`--max-semi-space-size=${semiSpaceMiB}`, `--max-old-space-size=${memoryMiB}`, program]
  const result = await runner.run(process.execPath, args, options).catch((error: unknown) => {
    throw options.signal?.reason instanceof AppError ? options.signal.reason : error
  })
  if (isKilled(result)) {
    if (outOfMemory.test(result.stderr)) throw tooMuch()
    log.error({ stderr: result.stderr.slice(0, 4_096) }, `${program} was killed; see journalctl -k -g oom`)
    throw new AppError(
      generalErrors.NotReady,
      'the process that works on it was killed, most likely since memory is short; nothing was changed, send it again',
      { retryAfterSec: 10 },
    )
  }
  if (result.exitCode !== 0) {
    log.error({ stderr: result.stderr.slice(0, 4_096) }, `${program} failed`)
    throw new Error(`${program} failed; its output is in the previous line of the journal`)
  }
  const finding = JSON.parse(result.stdout) as Finding | { readonly refused: Refused }
  if (!('refused' in finding)) return finding as Exclude<Finding, { readonly refused: Refused }>
  const { kind, message, details } = finding.refused
  throw new AppError(kind, message, details ? { details } : {})
}
