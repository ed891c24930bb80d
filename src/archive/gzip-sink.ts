import { once } from 'node:events'
import type { FileHandle } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { BlockSink } from './block-writer.ts'

// Large, since each block costs a turn of the event loop.
const blockBytes = 1_048_576

/** One stream of gzip. */
export function createGzipSink(file: FileHandle): BlockSink {
  const options = { chunkSize: blockBytes, writableHighWaterMark: 2 * blockBytes }
  const compressor = createGzip(options)
  const written = pipeline(compressor, async (chunks: AsyncIterable<Buffer>) => {
    for await (const chunk of chunks) await file.writeFile(chunk)
    await file.sync()
  })
  // Who waits for a block or for the end hears of it.
  written.catch(() => undefined)
  return {
    blockBytes,
    atOnce: 1,
    take(block) {
      const taken = new Promise<void>((resolve, reject) => {
        compressor.write(block, (error) => (error ? reject(error) : resolve()))
      })
      // A file that fails destroys the compressor, which then calls no callback.
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
