import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { endLine } from './protocol.ts'

// The decompressor takes this much at once.
const chunkBytes = 262_144

/**
 * The bytes of a file that another process still writes, up to the size which that process last reported.
 * @param lines numbers of bytes, then `end`; if the lines stop without `end`, the writer has given up
 * @param onChunk receives every byte once, in order
 */
export function readGrowing(
  file: string,
  lines: AsyncIterable<string>,
  onChunk: (chunk: Buffer) => void,
): Readable {
  return Readable.from(grow(file, lines, onChunk), { objectMode: false, highWaterMark: chunkBytes })
}

async function* grow(
  file: string,
  lines: AsyncIterable<string>,
  onChunk: (chunk: Buffer) => void,
): AsyncGenerator<Buffer> {
  const handle = await open(file, 'r')
  try {
    let position = 0
    for await (const line of lines) {
      if (line === endLine) return
      for (const written = Number(line); position < written;) {
        const room = Buffer.allocUnsafeSlow(Math.min(chunkBytes, written - position))
        const { bytesRead } = await handle.read(room, 0, room.length, position)
        if (bytesRead === 0) throw new Error(`${file} is shorter than the reported ${written} bytes`)
        position += bytesRead
        const chunk = room.subarray(0, bytesRead)
        onChunk(chunk)
        yield chunk
      }
    }
    throw new AppError(generalErrors.BadRequest, 'the connection ended before the body did')
  } finally {
    await handle.close()
  }
}
