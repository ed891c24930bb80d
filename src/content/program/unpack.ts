import { createHash } from 'node:crypto'
import {
  closeSync,
  openSync,
  write,
  writeSync,
  existsSync,
  linkSync,
  mkdirSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { promisify } from 'node:util'
import type { DiskRoom } from '../../archive/disk-room.ts'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { decompress, type Flow } from '../../archive/compression.ts'
import { bundleArchiveLimits, type ArchiveLimits } from '../../archive/limits.ts'
import { createMemberNames } from '../../archive/member-names.ts'
import { refuse } from '../../archive/refusal.ts'
import { readTar, type TarMember } from '../../archive/tar-reader.ts'
import { AppError } from '../../errors/app-error.ts'
import { letBuffersGo } from '../../upload/buffer-garbage.ts'
import { createDiskRoom } from '../../upload/disk-room.ts'
import type { Unpacked, UnpackOrder } from './protocol.ts'
import { isIntact } from './publish.ts'

/** SHA-256 of a content, hex, and its size. */
interface Hashed {
  readonly sha256: string
  readonly sizeBytes: number
}

const writeAsync = promisify(write)
// A thread costs more than the write of this many bytes into the page cache.
const smallBytes = 65_536

/** Hashes a content that is not kept. */
async function hashContent(content: AsyncIterable<Buffer>): Promise<Hashed> {
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
async function saveFile(file: string, content: AsyncIterable<Buffer>, room: DiskRoom): Promise<Hashed> {
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

const blobFolder = 'blobs/'
const sha256Blob = /^blobs\/sha256\/([0-9a-f]{64})$/

/**
 * Unpacks an OCI image layout into the folder of an upload: `index.json`, and `blobs/<hex>` for each blob, whose content
 * has that digest. A blob that the store has intact, or that an earlier run left there, is hashed and not written: stored blobs are
 * read before, so that arriving ones can replace those that the disk has altered. Members that are not
 * part of a layout are skipped. Nothing is synced, and no JSON is parsed.
 * @throws AppError why the archive is refused; no unfinished file is left
 */
export async function unpack(order: UnpackOrder, source: Readable): Promise<Unpacked> {
  const limits: ArchiveLimits = { ...bundleArchiveLimits, ...order.limits }
  const parts = join(order.upload, 'parts')
  // A killed run may have left an unfinished file.
  rmSync(parts, { recursive: true, force: true })
  mkdirSync(parts, { mode: 0o700 })
  const layout = createLayout(order, limits, parts)
  const names = createMemberNames(limits)
  let unpackedBytes = 0
  const onFlow = (flow: Flow) => {
    letBuffersGo(flow.unpackedBytes - unpackedBytes)
    unpackedBytes = flow.unpackedBytes
  }
  try {
    for await (const member of readTar(decompress(source, limits, onFlow), limits)) {
      const path = names.admit(member.name, member.kind)
      if (member.kind === 'file') await layout.add(path, member)
    }
    return layout.end()
  } catch (error) {
    rmSync(parts, { recursive: true, force: true })
    mkdirSync(parts, { mode: 0o700 })
    throw layout.explain(error)
  }
}

function createLayout({ upload, blobs, reserveBytes }: UnpackOrder, limits: ArchiveLimits, parts: string) {
  const room = createDiskRoom({ folder: upload, reserveBytes })
  let isMarked = false
  let indexSha256: string | undefined
  let blobCount = 0
  let sizeBytes = 0
  let writtenBytes = 0

  const addIndex = async ({ sizeBytes: given, content }: TarMember): Promise<void> => {
    if (given > limits.textBytes)
      throw refuse('MemberTooLarge', 'index.json', `has ${given} bytes; ${limits.textBytes} are allowed`)
    const part = join(parts, 'index.json')
    indexSha256 = (await saveFile(part, content, room)).sha256
    renameSync(part, join(upload, 'index.json'))
  }

  const addBlob = async (path: string, { content }: TarMember): Promise<void> => {
    const hex = sha256Blob.exec(path)?.[1]
    if (hex === undefined)
      throw refuse(
        'BlobName',
        path,
        'is no blob of a bundle; these are named blobs/sha256/ and 64 digits from 0 to 9 and a to f, other digests are not supported',
      )
    const file = join(upload, 'blobs', hex)
    const isHeld = existsSync(file) || (await isLinked(join(blobs, hex), file, hex))
    const part = join(parts, hex)
    const hashed = isHeld ? await hashContent(content) : await saveFile(part, content, room)
    if (hashed.sha256 !== hex)
      throw refuse(
        'BlobDiffers',
        path,
        `has a content with the digest sha256:${hashed.sha256}; copy the archive again, or build it again`,
      )
    if (!isHeld) {
      renameSync(part, file)
      writtenBytes += hashed.sizeBytes
    }
    blobCount += 1
    sizeBytes += hashed.sizeBytes
  }

  return {
    async add(path: string, member: TarMember): Promise<void> {
      if (path === 'oci-layout') isMarked = true
      else if (path === 'index.json') await addIndex(member)
      else if (path.startsWith(blobFolder)) await addBlob(path, member)
    },
    end(): Unpacked {
      if (!isMarked) throw noLayout('oci-layout')
      if (indexSha256 === undefined) throw noLayout('index.json')
      return { indexDigest: `sha256:${indexSha256}`, blobCount, sizeBytes, writtenBytes }
    },
    /** Old archives of images have links: the better reason is what they are. */
    explain: (error: unknown): unknown =>
      error instanceof AppError && error.details?.reason === 'MemberKind' && !isMarked && blobCount === 0
        ? noLayout('oci-layout', error)
        : error,
  }
}

const noLayout = (missing: string, cause?: unknown) =>
  refuse(
    'NotALayout',
    undefined,
    `has no ${missing} at its top, so it is no OCI image layout; edgehostctl content build --image-archive FILE --output BUNDLE.tar.zst makes a bundle of an archive of images`,
    cause,
  )

/** Links a blob that the store has intact into the upload. */
async function isLinked(stored: string, file: string, hex: string): Promise<boolean> {
  // Most blobs are new: the question costs less than an error.
  if (!existsSync(stored) || !(await isIntact(stored, hex))) return false
  try {
    linkSync(stored, file)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // EMLINK: ext4 allows 65,000 names of one file; the blob is then written once more.
    if (code === 'ENOENT' || code === 'EMLINK') return false
    throw error
  }
}
