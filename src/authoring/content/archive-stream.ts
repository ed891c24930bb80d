import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { decompress } from '../../archive/compression.ts'
import { imageArchiveLimits } from './limits.ts'

// The magic numbers of RFC 1952 and RFC 8878.
const magics = [Buffer.from([0x1f, 0x8b]), Buffer.from([0x28, 0xb5, 0x2f, 0xfd])]
const chunkBytes = 1_048_576

/** Whether the first bytes of a file say that it is gzip or Zstandard. */
export async function isCompressed(path: string): Promise<boolean> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0)
    const start = buffer.subarray(0, bytesRead)
    return magics.some((magic) => start.subarray(0, magic.length).equals(magic))
  } finally {
    await file.close()
  }
}

/**
 * The bytes of a tar archive, decompressed where it is compressed.
 * @param onRead called with the number of bytes of the file that were read so far
 */
export async function* readArchive(path: string, onRead: (bytes: number) => void): AsyncGenerator<Buffer> {
  if (await isCompressed(path)) {
    yield* decompress(createReadStream(path, { highWaterMark: 262_144 }), imageArchiveLimits, (flow) =>
      onRead(flow.compressedBytes),
    )
    return
  }
  let bytes = 0
  for await (const chunk of createReadStream(path, { highWaterMark: chunkBytes }) as AsyncIterable<Buffer>) {
    bytes += chunk.length
    onRead(bytes)
    yield chunk
  }
}
