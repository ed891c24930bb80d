import { createStatusLine, type MaybeTerminal } from '../program/status-line.ts'
import { megabytes } from './contents.ts'

/** How far something long is, on a terminal; nothing elsewhere, and nothing in its first second. */
export interface Progress {
  /** @param total 0 where it is not known */
  say(done: number, total: number): void
  /** Takes the line away. */
  clear(): void
}

const quietMs = 1_000
const pauseMs = 100

/** @param what for example `packing`, in front of the figures */
export function createProgress(
  what: string,
  stream: MaybeTerminal,
  now: () => number = () => performance.now(),
): Progress {
  const line = createStatusLine(stream)
  let nextAt = now() + quietMs
  return {
    say(done, total) {
      if (now() < nextAt) return
      nextAt = now() + pauseMs
      const share = total > 0 ? ` of ${megabytes(total)}, ${Math.floor((100 * done) / total)} %` : ''
      line.draw(`${what} ${megabytes(done)}${share}`)
    },
    clear: line.clear,
  }
}
