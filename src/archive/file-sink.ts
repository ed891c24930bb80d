import type { FileHandle } from 'node:fs/promises'
import type { BlockSink } from './block-writer.ts'

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
