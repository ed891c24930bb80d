import { createGrowingBuffer } from './growing-buffer.ts'

/** Bytes in, lines out. */
export interface LineSplitter {
  add(chunk: Uint8Array): void
  /** There is no more: what has no line end is a line as well. */
  end(): void
}

// A line that never ends must not fill the memory.
const longestLine = 65_536
const lineEnd = 0x0a

/**
 * Cuts UTF-8 text into lines, wherever its chunks end. Of a line of more than 64 KiB the rest is left out.
 * @param onLine told each line without its end, and how many bytes have been read up to the begin of the next one
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
  /** As many whole lines as there is room for, each with its end; of a longer one its end. */
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
