import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { constants, createGzip, createZstdCompress } from 'node:zlib'

/** Compresses into a file, block by block. */
export interface BlockWriter {
  /** The free part of the current block, to write into; never empty. */
  room(): Buffer
  /** Says how many bytes of `room()` were filled. The promise is there when it has to be waited for. */
  filled(bytes: number): Promise<void> | undefined
  put(chunk: Buffer): Promise<void>
  /** Resolves when all of it is on the disk. */
  end(): Promise<void>
  /** Gives up; the file stays as it is. */
  abandon(): Promise<void>
}

// Large, since each block costs a turn of the event loop; of one size, so that what a compressor makes of them depends
// on the content alone.
const blockBytes = 1_048_576
const zstdLevel = 3

/** Two blocks and no more: a thread compresses the one while the other is filled. */
export function createBlockWriter(file: string, format: 'gzip' | 'zstd'): BlockWriter {
  const compressor = createCompressor(format)
  const written = pipeline(compressor, createWriteStream(file, { flush: true }))
  // Who waits for a block or for the end hears of it.
  written.catch(() => undefined)
  const blocks = [Buffer.allocUnsafe(blockBytes), Buffer.allocUnsafe(blockBytes)] as const
  let current: 0 | 1 = 0
  let used = 0
  let inFlight: Promise<void> = Promise.resolve()

  const compress = (block: Buffer): Promise<void> => {
    const promise = new Promise<void>((resolve, reject) => {
      compressor.write(block, (error) => (error ? reject(error) : resolve()))
    })
    // A writer that fails destroys the compressor, which then calls nobody back.
    return Promise.race([promise, written])
  }

  const next = async (): Promise<void> => {
    const before = inFlight
    inFlight = compress(blocks[current])
    inFlight.catch(() => undefined)
    current = current === 0 ? 1 : 0
    used = 0
    await before
  }

  const writer: BlockWriter = {
    room: () => blocks[current].subarray(used),
    filled(bytes) {
      used += bytes
      return used === blockBytes ? next() : undefined
    },
    async put(chunk) {
      for (let at = 0; at < chunk.length;) {
        const taken = chunk.copy(writer.room(), 0, at)
        at += taken
        await writer.filled(taken)
      }
    },
    async end() {
      await inFlight
      compressor.end(blocks[current].subarray(0, used))
      await written
    },
    async abandon() {
      if (!compressor.destroyed) {
        compressor.destroy()
        await once(compressor, 'close')
      }
      await written.catch(() => undefined)
    },
  }
  return writer
}

function createCompressor(format: 'gzip' | 'zstd') {
  const shared = { chunkSize: blockBytes, writableHighWaterMark: 2 * blockBytes }
  if (format === 'gzip') return createGzip(shared)
  const params = { [constants.ZSTD_c_compressionLevel]: zstdLevel, [constants.ZSTD_c_checksumFlag]: 1 }
  return createZstdCompress({ ...shared, params })
}
