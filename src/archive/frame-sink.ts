import type { FileHandle } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import { constants, zstdCompress } from 'node:zlib'
import type { BlockSink } from './block-writer.ts'

// A frame begins without knowledge of what was before; level 3 looks back no further than this anyway.
const blockBytes = 2_097_152
const mostAtOnce = 4
const options = {
  // A frame in one go; pages of it that stay empty cost nothing.
  chunkSize: blockBytes,
  params: { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_checksumFlag]: 1 },
}

const compress = promisify(zstdCompress)

/**
 * A frame of Zstandard for each block, some at a time, and one after the other in the file (RFC 8878, 3). The workers
 * of the library itself would do the same within one frame, but Node takes their pauses for the end of the stream.
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
