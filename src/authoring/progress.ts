import type { WriteStream } from 'node:tty'

/** How far something long is, on a terminal; nothing elsewhere, and nothing in its first second. */
export interface Progress {
  /** @param total 0 where it is not known */
  say(done: number, total: number): void
  /** Takes the line away. */
  clear(): void
}

const eraseLine = '\r\u001b[K'
const quietMs = 1_000
const pauseMs = 100

/** @param what for example `packing`, in front of the figures */
export function createProgress(
  what: string,
  stream: Pick<WriteStream, 'write'> & { isTTY?: boolean; columns?: number },
  now: () => number = () => performance.now(),
): Progress {
  const isShown = stream.isTTY === true
  let nextAt = now() + quietMs
  let isDrawn = false
  return {
    say(done, total) {
      if (!isShown || now() < nextAt) return
      nextAt = now() + pauseMs
      const share = total > 0 ? ` of ${megabytes(total)}, ${Math.floor((100 * done) / total)} %` : ''
      stream.write(`${eraseLine}${`${what} ${megabytes(done)}${share}`.slice(0, (stream.columns ?? 80) - 1)}`)
      isDrawn = true
    },
    clear() {
      if (isDrawn) stream.write(eraseLine)
      isDrawn = false
    },
  }
}

/** Decimal megabytes or kilobytes, `12.3 MB`. */
export const megabytes = (bytes: number): string =>
  bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
