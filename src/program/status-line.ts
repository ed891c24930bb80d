import type { WriteStream } from 'node:tty'

/** An output that may be a terminal. */
export type MaybeTerminal = Pick<WriteStream, 'write'> & { isTTY?: boolean; columns?: number }

/**
 * A line of a terminal that shows the current step and is overwritten by the next one. Prints nothing where there is no
 * terminal.
 */
export interface StatusLine {
  /** Replaces the line by as much of the text as fits. */
  draw(text: string): void
  /** Erases the line. */
  clear(): void
}

const eraseLine = '\r\u001b[K'

export function createStatusLine(stream: MaybeTerminal): StatusLine {
  let isDrawn = false
  return {
    draw(text) {
      if (stream.isTTY !== true) return
      // A serial console does not report a width.
      const { columns = 0 } = stream
      stream.write(`${eraseLine}${text.slice(0, (columns || 80) - 1)}`)
      isDrawn = true
    },
    clear() {
      if (isDrawn) stream.write(eraseLine)
      isDrawn = false
    },
  }
}
