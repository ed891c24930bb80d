import { createHash, type Hash } from 'node:crypto'
import { constants } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { refuseFull, refuseFullOf } from '../../errors/storage-full.ts'

/** The bytes of a blob that this host holds, and their hash. */
export interface Held {
  readonly sizeBytes: number
  /** SHA-256 of exactly these bytes. */
  readonly hash: Hash
}

/** Appends to the held bytes of one blob. */
export interface PartWriter {
  /** Takes the next bytes. A promise that it returns is to be awaited before more are given. */
  write(chunk: Buffer): Promise<void> | undefined
  /** Writes what was taken and closes the file. @throws as `write` */
  finish(): Promise<Held>
}

// One batch fills while another one is being written.
const batchBytes = 524_288
const readBytes = 1_048_576

export const emptyHeld = (): Held => ({ sizeBytes: 0, hash: createHash('sha256') })

/**
 * Reads the held bytes of a part again, as after a restart.
 * @throws the reason of the signal
 */
export async function readHeld(file: string, signal: AbortSignal): Promise<Held> {
  const hash = createHash('sha256')
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    const buffer = Buffer.allocUnsafeSlow(readBytes)
    for (let sizeBytes = 0; ;) {
      signal.throwIfAborted()
      const { bytesRead } = await handle.read(buffer, 0, readBytes, sizeBytes)
      if (bytesRead === 0) return { sizeBytes, hash }
      hash.update(buffer.subarray(0, bytesRead))
      sizeBytes += bytesRead
    }
  } finally {
    await handle.close()
  }
}

/**
 * Opens the file of a part, mode 0600, and appends to it with constant memory. The chunks are hashed and written as they are,
 * without a copy. The hash of `held` is continued, so `held` is of no more use then.
 * @param onWritten called after each write with the number of bytes held
 * @throws AppError StorageFull, from each method, on a full disk or an exceeded quota
 */
export async function openPart({
  file,
  held,
  onWritten,
}: {
  readonly file: string
  readonly held: Held
  readonly onWritten: (sizeBytes: number) => Promise<void> | void
}): Promise<PartWriter> {
  const { hash } = held
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW
  const handle = await open(file, flags, 0o600).catch(refuseFull)
  let position = held.sizeBytes
  let batch: Buffer[] = []
  let filled = 0
  let writing: Promise<void> | undefined
  let failure: { readonly error: unknown } | undefined

  function begin(): void {
    const [chunks, at] = [batch, position]
    position += filled
    batch = []
    filled = 0
    writing = writeAll(handle, chunks, at)
      .catch(refuseFullOf(file))
      .then(() => onWritten(position))
      .catch((error: unknown) => {
        failure = { error }
      })
      .finally(() => (writing = undefined))
  }

  async function passOn(): Promise<void> {
    await writing
    if (failure) throw failure.error
    if (filled > 0) begin()
  }

  return {
    write(chunk) {
      if (failure) throw failure.error
      hash.update(chunk)
      batch.push(chunk)
      filled += chunk.length
      if (filled < batchBytes) return undefined
      if (writing) return passOn()
      begin()
      return undefined
    },
    async finish() {
      try {
        await passOn()
        await writing
        if (failure) throw failure.error
        return { sizeBytes: position, hash }
      } finally {
        await handle.close()
      }
    },
  }
}

/** Writes all chunks at a position. A short write(2) precedes ENOSPC. */
async function writeAll(handle: FileHandle, chunks: Buffer[], position: number): Promise<void> {
  let rest = chunks
  for (let at = position; rest.length > 0;) {
    let { bytesWritten } = await handle.writev(rest, at)
    at += bytesWritten
    const first = rest.findIndex(({ length }) => {
      if (bytesWritten < length) return true
      bytesWritten -= length
      return false
    })
    rest = first === -1 ? [] : rest.slice(first)
    if (bytesWritten > 0 && rest[0]) rest[0] = rest[0].subarray(bytesWritten)
  }
}
