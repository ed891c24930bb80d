import { writeSync } from 'node:fs'
import { systemReason } from '../errors/system-reason.ts'

/** Writing to standard output failed. */
export class OutputFailed extends Error {
  override readonly name = 'OutputFailed'
  /** The reader has closed the pipe, as in `edgehostctl … | head`; programs do not report this. */
  readonly isClosed: boolean

  constructor(cause: NodeJS.ErrnoException) {
    super(`standard output cannot be written: ${systemReason(cause)}`, { cause })
    this.isClosed = cause.code === 'EPIPE'
  }
}

const retryMs = 10

/**
 * Writes all data to standard output before it returns. Node's own stream takes a short write to a file, as on a disk
 * that fills up, for a complete one, and reports errors only later.
 * @throws OutputFailed
 */
export function writeOutput(data: string | Uint8Array): void {
  let rest = typeof data === 'string' ? Buffer.from(data) : data
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest))
    } catch (error) {
      const failure = error as NodeJS.ErrnoException
      if (failure.code !== 'EAGAIN') throw new OutputFailed(failure)
      // A terminal or pipe that is full and that another program has made non-blocking.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryMs)
    }
  }
}

/** Writes to standard error. A failure cannot be reported; it does not change the exit code. */
export function writeError(text: string): void {
  try {
    writeSync(2, text)
  } catch {
    // There is no output left to report it on.
  }
}
