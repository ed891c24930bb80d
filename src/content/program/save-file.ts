import { createHash } from 'node:crypto'
import { closeSync, openSync, write, writeSync } from 'node:fs'
import { promisify } from 'node:util'
import type { DiskRoom } from '../../archive/disk-room.ts'

/** SHA-256 of a content, hex, and its size. */
export interface Hashed {
  readonly sha256: string
  readonly sizeBytes: number
}

const writeAsync = promisify(write)
// A thread costs more than the write of this many bytes into the page cache.
const smallBytes = 65_536

/** Hashes a content that is not kept. */
export async function hashContent(content: AsyncIterable<Buffer>): Promise<Hashed> {
  const hash = createHash('sha256')
  let sizeBytes = 0
  for await (const piece of content) {
    hash.update(piece)
    sizeBytes += piece.length
  }
  return { sha256: hash.digest('hex'), sizeBytes }
}

/**
 * Writes a content to a file, mode 0600, which it replaces, and hashes it. While a thread writes a piece, this one
 * hashes it and the next one is decompressed. The file is not synced.
 * @throws AppError StorageFull from `room`; system errors unchanged. The file then has a part of the content.
 */
export async function saveFile(
  file: string,
  content: AsyncIterable<Buffer>,
  room: DiskRoom,
): Promise<Hashed> {
  const hash = createHash('sha256')
  let sizeBytes = 0
  let writing: Promise<void> | undefined
  await room.takeFile()
  const descriptor = openSync(file, 'w', 0o600)
  try {
    for await (const piece of content) {
      await room.take(piece.length)
      await writing
      if (piece.length <= smallBytes) writeAllSync(descriptor, piece)
      else writing = writeAll(descriptor, piece)
      // The next round or the end gets the error.
      writing?.catch(() => undefined)
      hash.update(piece)
      sizeBytes += piece.length
    }
    await writing
  } finally {
    await writing?.catch(() => undefined)
    closeSync(descriptor)
  }
  return { sha256: hash.digest('hex'), sizeBytes }
}

// write(2) may write less than requested, for example on a full disk.
async function writeAll(descriptor: number, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length;) at += (await writeAsync(descriptor, bytes, at)).bytesWritten
}

function writeAllSync(descriptor: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length;) at += writeSync(descriptor, bytes, at)
}
