import type { FileHandle } from 'node:fs/promises'
import { once } from 'node:events'
import { pipeline } from 'node:stream/promises'
import { createGzip, constants, zstdCompress } from 'node:zlib'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'

/** Compresses into a file, block by block. */
export interface BlockWriter {
  /** The free part of the current block, to be filled by the caller; never empty. */
  room(): Buffer
  /** Takes over that many bytes of `room()`. Returns a promise when the caller has to wait. */
  filled(bytes: number): Promise<void> | undefined
  put(chunk: Buffer): Promise<void>
  /** Resolves when everything is on the disk. */
  end(): Promise<void>
  /** Stops writing; the file stays as it is. */
  abandon(): Promise<void>
}

/** The consumer of the blocks. */
interface BlockSink {
  /** All blocks except the last have this size, so that the output depends on the content alone. */
  readonly blockBytes: number
  /** Number of blocks that it processes in parallel. */
  readonly atOnce: number
  /** Resolves when the block may be reused. */
  take(block: Buffer): Promise<void>
  /** Takes the last block, which may be empty. Resolves when all blocks are on the disk. */
  end(block: Buffer): Promise<void>
  abandon(): Promise<void>
}

/** Holds as many blocks as the sink processes in parallel, and one more that is being filled. */
export function createBlockWriter(sink: BlockSink): BlockWriter {
  const { blockBytes } = sink
  const makeBlock = () => ({ bytes: Buffer.allocUnsafeSlow(blockBytes), isFree: Promise.resolve() })
  // The block that is being filled, and the blocks in the sink, the oldest first.
  let block = makeBlock()
  const others = Array.from({ length: sink.atOnce }, makeBlock)
  let used = 0

  const next = async (): Promise<void> => {
    block.isFree = sink.take(block.bytes)
    // The next caller that needs the block, or the end, gets the error.
    block.isFree.catch(() => undefined)
    others.push(block)
    block = others.shift() ?? makeBlock()
    used = 0
    await block.isFree
  }

  const writer: BlockWriter = {
    room: () => block.bytes.subarray(used),
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
    end: () => sink.end(block.bytes.subarray(0, used)),
    abandon: () => sink.abandon(),
  }
  return writer
}

// Large, since each block costs one turn of the event loop.
const blockBytes = 1_048_576

/** Writes blocks as they are. */
export function createFileSink(file: FileHandle): BlockSink {
  // One at a time: the blocks are written at the position of the file.
  let written: Promise<void> = Promise.resolve()
  return {
    blockBytes,
    atOnce: 1,
    take(block) {
      const before = written
      written = (async () => {
        await before
        await file.writeFile(block)
      })()
      return written
    },
    async end(last) {
      await written
      await file.writeFile(last)
      await file.sync()
    },
    async abandon() {
      await written.catch(() => undefined)
    },
  }
}

/** Writes one gzip stream. */
export function createGzipSink(file: FileHandle): BlockSink {
  const options = { chunkSize: blockBytes, writableHighWaterMark: 2 * blockBytes }
  const compressor = createGzip(options)
  const written = pipeline(compressor, async (chunks: AsyncIterable<Buffer>) => {
    for await (const chunk of chunks) await file.writeFile(chunk)
    await file.sync()
  })
  // Callers that wait for a block or for the end get the error.
  written.catch(() => undefined)
  return {
    blockBytes,
    atOnce: 1,
    take(block) {
      const taken = new Promise<void>((resolve, reject) => {
        compressor.write(block, (error) => (error ? reject(error) : resolve()))
      })
      // An error of the file destroys the compressor, which then does not call its callback.
      return Promise.race([taken, written])
    },
    async end(last) {
      compressor.end(last)
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
}

// A frame starts without the history of earlier frames. A larger frame would compress no better: 2 MiB is the window of level 3.
const frameBytes = 2_097_152
const mostAtOnce = 4
const options = {
  // Compresses a frame in one call; pages of the buffer that are never touched use no memory.
  chunkSize: frameBytes,
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
    blockBytes: frameBytes,
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
