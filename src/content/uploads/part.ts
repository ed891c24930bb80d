import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { contentErrors } from '../codes.ts'
import { createHash, type Hash } from 'node:crypto'
import { constants } from 'node:fs'
import { open, type FileHandle, opendir, readFile, rm, stat } from 'node:fs/promises'
import { refuseFull, refuseFullOf } from '../../errors/system-reason.ts'
import { join } from 'node:path'
import { digestOf } from '../format/descriptor.ts'
import type { StagedUpload } from '../store/content-store.ts'

/** The bytes of a blob that a request carries. */
export interface ByteRange {
  readonly offset: number
  readonly lengthBytes: number
  /** Size of the blob, if the request says it. */
  readonly totalBytes: number | undefined
}

// RFC 9110, 14.4; the distribution specification leaves out the unit and the size.
const syntax = /^(?:bytes )?(\d{1,15})-(\d{1,15})(?:\/(\d{1,15}|\*))?$/

/** @throws AppError BadRequest */
export function parseContentRange(text: string | undefined): ByteRange {
  const [, first, last, total] = syntax.exec(text ?? '') ?? []
  const [offset, end] = [Number(first), Number(last)]
  if (first === undefined || end < offset)
    throw invalid(
      text === undefined
        ? 'Content-Range is missing; send bytes FIRST-LAST/SIZE, for example bytes 0-1023/4096'
        : 'Content-Range is not bytes FIRST-LAST/SIZE, for example bytes 0-1023/4096',
    )
  return {
    offset,
    lengthBytes: end - offset + 1,
    totalBytes: total === undefined || total === '*' ? undefined : Number(total),
  }
}

/**
 * Checks that a range continues a blob.
 * @throws AppError WrongOffset with the right offset, BadRequest for a range that does not fit the size of the blob
 */
export function requireRange(
  { offset, lengthBytes, totalBytes }: ByteRange,
  heldBytes: number,
  sizeBytes: number,
): void {
  if (totalBytes !== undefined && totalBytes !== sizeBytes)
    throw invalid(`the blob has ${sizeBytes} bytes, as its manifest says, not ${totalBytes}`)
  if (offset !== heldBytes) throw wrongOffset(heldBytes)
  if (offset + lengthBytes > sizeBytes)
    throw invalid(`the blob has ${sizeBytes} bytes; Content-Range ends at ${offset + lengthBytes}`)
}

const wrongOffset = (offset: number) =>
  new AppError(contentErrors.WrongOffset, `the host has ${offset} bytes of this blob; continue there`, {
    details: { field: 'content-range', offset },
  })

const invalid = (message: string) =>
  new AppError(generalErrors.BadRequest, message, { details: { field: 'content-range' } })

/** The bytes of a blob that this host holds, and their hash. */
export interface Held {
  readonly sizeBytes: number
  /** SHA-256 of exactly these bytes. */
  readonly hash: Hash
}

/** Appends to the held bytes of one blob. */
interface PartWriter {
  /** Takes the next bytes. A promise that it returns is to be awaited before more are given. */
  write(chunk: Buffer): Promise<void> | undefined
  /** Writes the taken bytes and closes the file. @throws as `write` */
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

/** Whether a power cut has left index.json as it was sent; also true where that cannot be read now. */
export async function hasIndex({ folder }: StagedUpload, digest: string): Promise<boolean> {
  try {
    return digestOf(await readFile(join(folder, 'index.json'))) === digest
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT'
  }
}

/** Time of the last write to a file of an upload, milliseconds since 1970, UTC. */
export async function newestChange({ folder }: StagedUpload): Promise<number> {
  let newest = 0
  const note = async (file: string) => {
    newest = Math.max(newest, (await stat(file)).mtimeMs)
  }
  for (const name of ['upload.json', 'blobs', 'parts']) await note(join(folder, name))
  for await (const { name } of await opendir(join(folder, 'parts'), { bufferSize: 256 }))
    await note(join(folder, 'parts', name))
  return Math.floor(newest)
}

/** Hashes whole blobs again, since a power cut may have emptied them; those that differ are removed. @throws the reason of the signal */
export async function removeEmptied({ folder }: StagedUpload, signal: AbortSignal): Promise<void> {
  for await (const { name } of await opendir(join(folder, 'blobs'), { bufferSize: 256 })) {
    const file = join(folder, 'blobs', name)
    const { hash } = await readHeld(file, signal)
    if (hash.digest('hex') !== name) await rm(file)
  }
}
