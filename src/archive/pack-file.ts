import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import type { BlockWriter } from './sinks.ts'

export interface PackFileOptions {
  readonly path: string
  /** Offset of the content; without it the content is the whole file. */
  readonly start?: number | undefined
  readonly sizeBytes: number
  /** Name of the member, for messages. */
  readonly name: string
  readonly writer: BlockWriter
  /** Called with the number of bytes of each piece that was copied. */
  readonly onPacked?: (bytes: number) => void
}

/**
 * Copies a file, or a part of one, into an archive.
 * @returns SHA-256 of the content, hex
 * @throws Error if the file has changed its size meanwhile; the system's errors as they are
 */
export async function packFile({
  path,
  start,
  sizeBytes,
  name,
  writer,
  onPacked = () => undefined,
}: PackFileOptions): Promise<string> {
  const hash = createHash('sha256')
  const changed = () => new Error(`${path} (${name}) changed while it was packed; build it again`)
  // One byte more than expected, if the buffer has room, to notice that a file has grown.
  const beyond = start === undefined ? 1 : 0
  const file = openSync(path, 'r')
  try {
    for (let total = 0; total < sizeBytes;) {
      const room = writer.room()
      const wanted = Math.min(room.length, sizeBytes - total + beyond)
      const read = readSync(file, room, 0, wanted, (start ?? 0) + total)
      total += read
      if (read === 0 || total > sizeBytes) throw changed()
      hash.update(room.subarray(0, read))
      onPacked(read)
      const waiting = writer.filled(read)
      if (waiting !== undefined) await waiting
    }
  } finally {
    closeSync(file)
  }
  return hash.digest('hex')
}
