import type { WriteStream } from 'node:tty'

/** One line of a terminal that says what is being done; nothing elsewhere. */
export interface Progress {
  say(what: string): void
  /** Takes the line away. */
  clear(): void
}

const eraseLine = '\r\u001b[K'

export function createProgress(
  stream: Pick<WriteStream, 'write'> & { isTTY?: boolean; columns?: number },
): Progress {
  if (stream.isTTY !== true) return { say: () => undefined, clear: () => undefined }
  return {
    say: (what) => stream.write(`${eraseLine}${`reading ${what}`.slice(0, (stream.columns ?? 80) - 1)}`),
    clear: () => stream.write(eraseLine),
  }
}
