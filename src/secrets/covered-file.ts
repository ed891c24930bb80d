import { createCipheriv } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'

/** A file whose bytes are encrypted with a key that no other file has. */
export interface CoveredFile {
  readonly path: string
  /** 32 bytes. */
  readonly key: Buffer
}

const cipher = 'aes-256-ctr'
const blockBytes = 16

/**
 * Encrypts the bytes of a file from a position on, and decrypts them: AES-256-CTR, whose counter is the position, so that a file can be continued and
 * read anywhere. It does not show whether bytes were altered.
 * @returns takes the bytes in their order
 */
export function coverFrom(key: Buffer, position: number): (bytes: Buffer) => Buffer {
  const counter = Buffer.alloc(blockBytes)
  counter.writeBigUInt64BE(BigInt(Math.floor(position / blockBytes)), blockBytes - 8)
  const covering = createCipheriv(cipher, key, counter)
  covering.update(Buffer.alloc(position % blockBytes))
  return (bytes) => covering.update(bytes)
}

/** Opens a covered file for reads of what it was before. @throws the system's error */
export async function openCovered({ path, key }: CoveredFile) {
  const handle = await open(path)
  return {
    stat: () => handle.stat(),
    async read(buffer: Buffer, offset: number, length: number, position: number) {
      const { bytesRead } = await handle.read(buffer, offset, length, position)
      const part = buffer.subarray(offset, offset + bytesRead)
      coverFrom(key, position)(part).copy(part)
      return { buffer, bytesRead }
    },
    close: () => handle.close(),
  }
}

/** The bytes of a covered file as they were before. @param end the last one; absent: that of the file */
export async function* readCovered(
  { path, key }: CoveredFile,
  { start = 0, end = Infinity }: { readonly start?: number; readonly end?: number } = {},
): AsyncIterable<Buffer> {
  const uncover = coverFrom(key, start)
  const pieces = createReadStream(path, { start, end, highWaterMark: 1_048_576 }) as AsyncIterable<Buffer>
  for await (const piece of pieces) yield uncover(piece)
}
