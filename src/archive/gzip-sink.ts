import { once } from 'node:events'
import type { FileHandle } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { BlockSink } from './block-writer.ts'

// Large, since each block costs one turn of the event loop.
const blockBytes = 1_048_576

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
