import type { FileHandle } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import { constants, zstdCompress } from 'node:zlib'
import type { BlockSink } from './block-writer.ts'

// A frame starts without the history of earlier frames. A larger frame would compress no better: 2 MiB is the window of level 3.
const blockBytes = 2_097_152
const mostAtOnce = 4
const options = {
  // Compresses a frame in one call; pages of the buffer that are never touched use no memory.
  chunkSize: blockBytes,
  params: { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_checksumFlag]: 1 },
}

const compress = promisify(zstdCompress)

/**
 * Writes each block as a Zstandard frame; several are compressed in parallel and written in order (RFC 8878, 3). The
 * worker threads of the library would do the same within one frame, but Node takes their pauses for the end of the
 * stream.
 */
export function createFrameSink(file: FileHandle): BlockSink {
  let written: Promise<unknown> = Promise.resolve()

  const take = (block: Buffer): Promise<void> => {
    const frame = compress(block, options)
    const before = written
    const own = (async () => {
      const [bytes] = await Promise.all([frame, before])
      await file.writeFile(bytes)
    })()
    written = own
    return own
  }

  return {
    blockBytes,
    atOnce: Math.min(availableParallelism(), mostAtOnce),
    take,
    async end(last) {
      if (last.length > 0) await take(last)
      await written
      await file.sync()
    },
    async abandon() {
      await written.catch(() => undefined)
    },
  }
}
