import { createCipheriv } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'

/** A file whose bytes are encrypted with a key that no other file has. */
export interface EncryptedFile {
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
export function encryptFrom(key: Buffer, position: number): (bytes: Buffer) => Buffer {
  const counter = Buffer.alloc(blockBytes)
  counter.writeBigUInt64BE(BigInt(Math.floor(position / blockBytes)), blockBytes - 8)
  const stream = createCipheriv(cipher, key, counter)
  stream.update(Buffer.alloc(position % blockBytes))
  return (bytes) => stream.update(bytes)
}

/** Opens an encrypted file for reads of its original bytes. @throws the system's error */
export async function openEncrypted({ path, key }: EncryptedFile) {
  const handle = await open(path)
  return {
    stat: () => handle.stat(),
    async read(buffer: Buffer, offset: number, length: number, position: number) {
      const { bytesRead } = await handle.read(buffer, offset, length, position)
      const part = buffer.subarray(offset, offset + bytesRead)
      encryptFrom(key, position)(part).copy(part)
      return { buffer, bytesRead }
    },
    close: () => handle.close(),
  }
}

/** The original bytes of an encrypted file. @param end the last one; by default the last one of the file */
export async function* readEncrypted(
  { path, key }: EncryptedFile,
  { start = 0, end = Infinity }: { readonly start?: number; readonly end?: number } = {},
): AsyncIterable<Buffer> {
  const decrypt = encryptFrom(key, start)
  const pieces = createReadStream(path, { start, end, highWaterMark: 1_048_576 }) as AsyncIterable<Buffer>
  for await (const piece of pieces) yield decrypt(piece)
}
