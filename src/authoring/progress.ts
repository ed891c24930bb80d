import { createStatusLine, type MaybeTerminal } from '../program/status-line.ts'
import { megabytes } from './contents.ts'

/** Shows the progress of long work, on a terminal only and not in the first second. */
export interface Progress {
  /** @param done bytes. @param total bytes; 0 if unknown */
  report(done: number, total: number): void
  /** Removes the line. */
  clear(): void
}

const quietMs = 1_000
const pauseMs = 100

/** @param what the word before the figures, for example `packing` */
export function createProgress(
  what: string,
  stream: MaybeTerminal,
  now: () => number = () => performance.now(),
): Progress {
  const line = createStatusLine(stream)
  let nextAt = now() + quietMs
  return {
    report(done, total) {
      if (now() < nextAt) return
      nextAt = now() + pauseMs
      const share = total > 0 ? ` of ${megabytes(total)}, ${Math.floor((100 * done) / total)} %` : ''
      line.draw(`${what} ${megabytes(done)}${share}`)
    },
    clear: line.clear,
  }
}
