import type { WriteStream } from 'node:tty'

/** An output that may be a terminal. */
export type MaybeTerminal = Pick<WriteStream, 'write'> & { isTTY?: boolean; columns?: number }

/** One line of a terminal that says what is being done, and then something else; nothing elsewhere. */
export interface StatusLine {
  /** As much of the text as fits, in the place of what stood there. */
  draw(text: string): void
  /** Takes the line away. */
  clear(): void
}

const eraseLine = '\r\u001b[K'

export function createStatusLine(stream: MaybeTerminal): StatusLine {
  let isDrawn = false
  return {
    draw(text) {
      if (stream.isTTY !== true) return
      // A serial console has none.
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
