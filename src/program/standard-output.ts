import { writeSync } from 'node:fs'
import { systemReason } from '../errors/system-reason.ts'

/** Standard output could not be written. */
export class OutputFailed extends Error {
  override readonly name = 'OutputFailed'
  /** Its reader has ended, as of `edgehostctl … | head`; programs say nothing of that. */
  readonly isClosed: boolean

  constructor(cause: NodeJS.ErrnoException) {
    super(`standard output cannot be written: ${systemReason(cause)}`, { cause })
    this.isClosed = cause.code === 'EPIPE'
  }
}

const retryMs = 10

/**
 * Writes all of it to standard output before it returns. Node's own stream takes a short write into a file, as on a
 * disk that gets full, for a whole one, and tells of an error only later.
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
      // A terminal or a pipe that another program has made non-blocking, and that is full.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryMs)
    }
  }
}

/** Writes to standard error. A failure cannot be told; the exit code stays what it is. */
export function writeError(text: string): void {
  try {
    writeSync(2, text)
  } catch {
    // Nothing is left to say it on.
  }
}
