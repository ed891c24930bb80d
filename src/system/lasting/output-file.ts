import { fsyncSync, writeSync } from 'node:fs'
import { createGrowingBuffer } from '../../base/growing-buffer.ts'
import { createLineSplitter, createTail } from '../../base/lines.ts'
import { maxOutputBytes } from './run-files.ts'

/** The file that receives the output of a command. */
export interface OutputFile {
  /** @returns a function that writes a chunk from a pipe of the command; lines of two pipes are not mixed */
  addPipe(): (chunk: Uint8Array) => void
  /** Writes the rest and syncs the file. @returns how many bytes were left out, since the file or the disk is full */
  finish(): number
}

const longestPiece = 65_536
// Characters of at most four bytes in UTF-8, so the last lines and their heading need well below `roomForTail`.
const tailLength = 65_536
const roomForTail = 524_288

/**
 * Writes the output of a command to a file. Once the file is nearly at its limit, or a write fails, the rest of the output
 * is left out, except for its last lines, which are appended at the end. The command is neither ended nor blocked by this.
 * @param file descriptor, opened for appending, of an empty file
 */
export function createOutputFile(file: number, limit = maxOutputBytes): OutputFile {
  let writtenBytes = 0
  let leftOutBytes = 0
  let endsLine = true
  const flushes: (() => void)[] = []
  const tail = createTail(tailLength)
  const leftOut = createLineSplitter((line) => tail.add(line))

  /** @returns how many of the bytes are in the file */
  function append(bytes: Uint8Array, most: number): number {
    if (writtenBytes + bytes.length > most) return 0
    let done = 0
    try {
      while (done < bytes.length) done += writeSync(file, bytes, done)
    } catch {
      // ENOSPC, EDQUOT, EIO: what was written before stays.
    }
    writtenBytes += done
    if (done > 0) endsLine = bytes[done - 1] === 0x0a
    return done
  }
  function write(bytes: Uint8Array): void {
    const done = leftOutBytes === 0 ? append(bytes, limit - roomForTail) : 0
    leftOutBytes += bytes.length - done
    leftOut.add(bytes.subarray(done))
  }

  return {
    addPipe() {
      const line = createGrowingBuffer(longestPiece)
      const flush = () => {
        if (line.bytes().length > 0) write(line.bytes())
        line.clear()
      }
      const keep = (piece: Uint8Array) => {
        if (line.add(piece)) return
        flush()
        if (!line.add(piece)) write(piece)
      }
      flushes.push(flush)
      return (chunk) => {
        const whole = chunk.lastIndexOf(0x0a) + 1
        if (whole > 0) {
          keep(chunk.subarray(0, whole))
          flush()
        }
        keep(chunk.subarray(whole))
      }
    },
    finish() {
      for (const flush of flushes) flush()
      if (leftOutBytes > 0) {
        leftOut.end()
        const heading = `${endsLine ? '' : '\n'}[${leftOutBytes} bytes of output are left out here, except for these last lines]\n`
        append(Buffer.from(heading + tail.text()), limit)
      }
      try {
        fsyncSync(file)
      } catch {
        // The keeper still has to record how the command ended.
      }
      return leftOutBytes
    },
  }
}
