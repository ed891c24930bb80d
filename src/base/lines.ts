import { createGrowingBuffer } from './growing-buffer.ts'

/** Splits bytes into lines. */
export interface LineSplitter {
  add(chunk: Uint8Array): void
  /** Ends the input: remaining bytes without a line end become a line as well. */
  end(): void
}

// A line that never ends must not fill the memory.
const longestLine = 65_536
const lineEnd = 0x0a

/**
 * Splits UTF-8 text into lines; chunks may end anywhere. Only the first 64 KiB of a longer line are kept.
 * @param onLine called with each line without its end, and with the number of bytes read up to the start of the next
 * line
 */
export function createLineSplitter(onLine: (line: string, readBytes: number) => void): LineSplitter {
  const line = createGrowingBuffer(longestLine)
  let readBytes = 0
  const keep = (piece: Uint8Array) => {
    readBytes += piece.length
    line.add(piece.subarray(0, longestLine - line.bytes().length))
  }
  const finish = () => {
    const text = line.bytes().toString()
    line.clear()
    onLine(text, readBytes)
  }
  return {
    add(chunk) {
      let from = 0
      for (let end = chunk.indexOf(lineEnd); end >= 0; end = chunk.indexOf(lineEnd, from)) {
        keep(chunk.subarray(from, end))
        readBytes += 1
        finish()
        from = end + 1
      }
      keep(chunk.subarray(from))
    },
    end() {
      if (line.bytes().length > 0) finish()
    },
  }
}

/** The last lines of a text. */
export interface Tail {
  add(line: string): void
  /** As many whole lines as fit, each with its end; of a line that is too long, its last part. */
  text(): string
}

/** Keeps the last lines of a text. @param limit most characters */
export function createTail(limit: number): Tail {
  let kept = ''
  const cut = () => {
    if (kept.length <= limit) return kept
    const begin = kept.indexOf('\n', kept.length - limit - 1) + 1
    return kept.slice(begin < kept.length ? begin : -limit)
  }
  return {
    add(line) {
      kept += `${line}\n`
      if (kept.length > 2 * limit) kept = cut()
    },
    text: cut,
  }
}
