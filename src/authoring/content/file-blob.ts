import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { Failure } from '../../ctl/exit-codes.ts'
import { systemReason } from '../../errors/system-reason.ts'
import type { FileRange, PlannedBlob } from './part.ts'

export interface FileBlobOptions extends FileRange {
  /** Without it the blob is the whole file. */
  readonly sizeBytes?: number
  /** The option and the file, for messages. */
  readonly place: string
  /** Called with the number of bytes of each chunk that was read. */
  readonly onRead?: (bytes: number) => void
}

const chunkBytes = 1_048_576

/**
 * A blob of a file, or of a part of one, which is read for its digest.
 * @throws Failure with the place if the file cannot be read
 */
export async function readFileBlob(options: FileBlobOptions): Promise<PlannedBlob> {
  const { path, start, place, onRead = () => undefined } = options
  const hash = createHash('sha256')
  const sizeBytes = await eachChunk(options, (chunk) => {
    hash.update(chunk)
    onRead(chunk.length)
  }).catch((error: unknown) => {
    throw unreadable(place, error)
  })
  return {
    digest: `sha256:${hash.digest('hex')}`,
    sizeBytes,
    isDocument: false,
    from: start === undefined ? { path } : { path, start },
    place,
  }
}

async function eachChunk({ path, start = 0, sizeBytes }: FileBlobOptions, use: (chunk: Buffer) => void) {
  const file = await open(path)
  const buffer = Buffer.allocUnsafe(chunkBytes)
  try {
    const stats = await file.stat()
    if (!stats.isFile()) throw new Error('it is not a regular file')
    const wanted = sizeBytes ?? stats.size
    let total = 0
    while (total < wanted) {
      const { bytesRead } = await file.read(buffer, 0, Math.min(chunkBytes, wanted - total), start + total)
      if (bytesRead === 0) throw new Error('it was cut off while it was read')
      use(buffer.subarray(0, bytesRead))
      total += bytesRead
    }
    return total
  } finally {
    await file.close()
  }
}

/** The failure for a file or folder that an option names. */
export const unreadable = (place: string, error: unknown): Failure =>
  error instanceof Failure
    ? error
    : new Failure('failed', `${place} cannot be read: ${systemReason(error as NodeJS.ErrnoException)}`, {
        cause: error,
      })
