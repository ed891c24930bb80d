import { constants } from 'node:fs'
import { open, unlink } from 'node:fs/promises'
import { refuseFull } from '../errors/storage-full.ts'

/** A file that is being written. */
export interface ArchiveFile {
  /** Resolves when there is room for more. */
  write: (chunk: Uint8Array) => Promise<void>
  /** Writes the rest and waits until it and the name of the file are on the disk. */
  finish: () => Promise<void>
  /** Hands on and writes what is held back, so that `onBatch` has had every byte. */
  flush: () => Promise<void>
  /** Takes the file away again, whatever state it is in. */
  discard: () => Promise<void>
}

// Two of these: one fills while the other is being written.
const batchBytes = 524_288

/**
 * Begins a file that is not there yet, mode 0600, with constant memory: 1 MiB whatever its size.
 * @param onWritten is told after each write how many bytes of the file can be read
 * @param onBatch is given every byte once, in order, before it is written; the buffer is used again afterwards
 * @throws AppError StorageFull, here and from each verb, on a full disk or quota; the system's error as it is, for
 *   example `EEXIST`, otherwise
 */
export async function createArchiveFile({
  folder,
  file,
  onBatch,
  onWritten,
}: {
  readonly folder: string
  /** Path of the file, in that folder. */
  readonly file: string
  readonly onBatch: (batch: Uint8Array) => void
  readonly onWritten?: ((sizeBytes: number) => void) | undefined
}): Promise<ArchiveFile> {
  const handle = await open(file, 'wx', 0o600).catch(refuseFull)
  let filling = Buffer.allocUnsafeSlow(batchBytes)
  let resting = Buffer.allocUnsafeSlow(batchBytes)
  let filled = 0
  let written = 0
  let writing: Promise<void> = Promise.resolve()

  async function write(chunk: Uint8Array): Promise<void> {
    for (let offset = 0; offset < chunk.length;) {
      const part = chunk.subarray(offset, offset + batchBytes - filled)
      filling.set(part, filled)
      filled += part.length
      offset += part.length
      if (filled === batchBytes) await passOn()
    }
  }

  // Waits for the batch before, not for this one.
  async function passOn(): Promise<void> {
    const batch = filling.subarray(0, filled)
    onBatch(batch)
    await writing
    ;[filling, resting, filled] = [resting, filling, 0]
    // A short write(2) is what comes before ENOSPC; writeFile continues until all is written, from where the last ended.
    writing = handle.writeFile(batch).then(() => onWritten?.((written += batch.length)), refuseFull)
    // The next caller that waits for it gets its error.
    writing.catch(() => undefined)
  }

  async function flush(): Promise<void> {
    if (filled > 0) await passOn()
    await writing
  }

  return {
    write,
    flush,
    async finish() {
      await flush()
      await handle.sync().catch(refuseFull)
      await handle.close()
      const parent = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY)
      try {
        await parent.sync()
      } finally {
        await parent.close()
      }
    },
    async discard() {
      await writing.catch(() => undefined)
      // Closed already, where only the folder could not be synced.
      await handle.close().catch(() => undefined)
      await unlink(file)
    },
  }
}
