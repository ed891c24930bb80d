import { constants } from 'node:fs'
import { open, unlink } from 'node:fs/promises'
import { refuseFull, refuseFullOf } from '../errors/storage-full.ts'

/** A file that is being written. */
export interface ArchiveFile {
  /** Resolves when there is room for more. */
  write: (chunk: Uint8Array) => Promise<void>
  /** Writes the rest and waits until it and the name of the file are on the disk. */
  finish: () => Promise<void>
  /** Writes buffered data and passes it to `onBatch`, so that `onBatch` has had every byte. */
  flush: () => Promise<void>
  /** To be called while nothing is being written: writes buffered data, and has no buffers then until the next write. */
  letBuffersGo: () => void
  /** Removes the file, whatever its state. */
  remove: () => Promise<void>
}

// There are two of these: one fills while the other is being written.
const batchBytes = 524_288

/**
 * Creates a new file, mode 0600, with constant memory: 1 MiB whatever its size.
 * @param onWritten called after each write with the number of bytes that can be read
 * @param onBatch gets every byte once, in order, before it is written; the buffer is reused afterwards
 * @throws AppError StorageFull, here and from each method, on a full disk or exceeded quota; other system errors
 * unchanged, for example `EEXIST`
 */
export async function createArchiveFile({
  folder,
  file,
  onBatch,
  onWritten,
}: {
  readonly folder: string
  /** Path of the file inside the folder. */
  readonly file: string
  readonly onBatch: (batch: Uint8Array) => void
  readonly onWritten?: ((sizeBytes: number) => void) | undefined
}): Promise<ArchiveFile> {
  const handle = await open(file, 'wx', 0o600).catch(refuseFull)
  // Of a body that arrives slowly only one is made.
  let filling: Buffer | undefined
  let resting: Buffer | undefined
  let filled = 0
  let written = 0
  let writing: Promise<void> = Promise.resolve()
  let emptied: Promise<void> | undefined

  async function write(chunk: Uint8Array): Promise<void> {
    await emptied
    for (let offset = 0; offset < chunk.length;) {
      const part = chunk.subarray(offset, offset + batchBytes - filled)
      filling ??= Buffer.allocUnsafeSlow(batchBytes)
      filling.set(part, filled)
      filled += part.length
      offset += part.length
      if (filled === batchBytes) await passOn()
    }
  }

  // Waits for the previous batch, not for this one.
  async function passOn(): Promise<void> {
    if (filling === undefined) return
    const batch = filling.subarray(0, filled)
    onBatch(batch)
    await writing
    ;[filling, resting, filled] = [resting, filling, 0]
    // A short write(2) precedes ENOSPC; writeFile continues from there until everything is written.
    writing = handle.writeFile(batch).then(() => onWritten?.((written += batch.length)), refuseFullOf(file))
    // The next caller that awaits it gets the error.
    writing.catch(() => undefined)
  }

  async function flush(): Promise<void> {
    await emptied
    await flushNow()
  }

  async function flushNow(): Promise<void> {
    if (filled > 0) await passOn()
    await writing
  }

  return {
    write,
    flush,
    letBuffersGo() {
      emptied = flushNow().then(() => {
        filling = undefined
        resting = undefined
        emptied = undefined
      })
      // The next write throws it.
      emptied.catch(() => undefined)
    },
    async finish() {
      await flush()
      await handle.sync().catch(refuseFullOf(file))
      await handle.close()
      const parent = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY)
      try {
        await parent.sync()
      } finally {
        await parent.close()
      }
    },
    async remove() {
      await emptied?.catch(() => undefined)
      await writing.catch(() => undefined)
      // Already closed if only the sync of the folder failed.
      await handle.close().catch(() => undefined)
      await unlink(file)
    },
  }
}
