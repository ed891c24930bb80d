import { createHash } from 'node:crypto'
import { mkdir, open, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { ReadableStream } from 'node:stream/web'
import { createTarDecoder } from 'modern-tar'
import { AppError } from '../errors/app-error.ts'
import type { DiskRoom } from './disk-room.ts'
import { decompress, type Flow } from './compression.ts'
import { withDefaults, type ArchiveLimits } from './limits.ts'
import { createMemberNames } from './member-names.ts'
import { refuse } from './refusal.ts'
import { createTarFrames } from './tar-frames.ts'

/** A file of an archive as it was unpacked. */
export interface Member {
  readonly sizeBytes: number
  /** Of its content, hex. */
  readonly sha256: string
  /** Whether its content lies in the folder; else a hole of its size does. */
  readonly isKept: boolean
}

/** An archive that lies unpacked in a folder. */
export interface Extracted {
  readonly folder: string
  /** Path below the folder -> what it is; files only. */
  readonly members: ReadonlyMap<string, Member>
}

export interface ExtractOptions {
  /** The bytes of the archive; destroyed in the end. */
  readonly source: Readable
  /** Made by this, in a folder that is there; nothing is written outside of it. */
  readonly folder: string
  readonly limits?: Partial<ArchiveLimits>
  /**
   * Which members are going to be read; without it all of them. The others are hashed, and a hole of their size lies in
   * the folder; so it does of what is larger than a text may be, or than all may be.
   */
  readonly isKept?: (path: string) => boolean
  /** The member that says what the others are; it does not count among the texts, wherever it comes in the archive. */
  readonly index?: string
  /** Of the disk; without it a full disk shows when a write fails. */
  readonly room?: DiskRoom
  readonly onFlow?: (flow: Flow) => void
}

/**
 * Unpacks a tar archive. Files are 0600 and folders 0700; content goes to the disk as it comes, so memory does not grow
 * with the archive. After a failure the folder is gone.
 * @throws AppError ArchiveInvalid, ArchiveDamaged or ArchiveTooLarge with details.reason and details.member; the
 *   system's error as it is, for example `ENOSPC`, and that of the source
 */
export async function extractArchive({
  source,
  folder,
  limits: given,
  isKept = () => true,
  index,
  room = endlessRoom,
  onFlow,
}: ExtractOptions): Promise<Extracted> {
  const limits = withDefaults(given)
  try {
    await mkdir(folder, { mode: 0o700 })
  } catch (error) {
    source.destroy()
    throw error
  }
  try {
    const texts = createTextLimit(limits, isKept, index)
    return { folder, members: await unpack({ source, folder, limits, room, texts, onFlow }) }
  } catch (error) {
    source.destroy()
    await rm(folder, { recursive: true, force: true })
    throw error
  }
}

interface Unpacking {
  readonly source: Readable
  readonly folder: string
  readonly limits: ArchiveLimits
  readonly room: DiskRoom
  /** Whether to keep a member of so many bytes. */
  readonly texts: (path: string, sizeBytes: number) => boolean
  readonly onFlow: ExtractOptions['onFlow']
}

async function unpack({
  source,
  folder,
  limits,
  room,
  texts,
  onFlow,
}: Unpacking): Promise<Map<string, Member>> {
  const members = new Map<string, Member>()
  const names = createMemberNames(limits)
  const folders = new Set(['.'])
  const makeFolder = async (path: string) => {
    if (folders.has(path)) return
    await room.takeFile()
    await mkdir(join(folder, path), { recursive: true, mode: 0o700 })
    folders.add(path)
  }
  // Not strict it would forgive a damaged header, a missing end and bytes behind the end.
  const decoder = createTarDecoder({ strict: true })
  const frames = framed(decompress(source, limits, onFlow), limits)
  const failure: { error?: unknown } = {}
  const bytes = ReadableStream.from(noting(frames, failure))
  try {
    for await (const { header, body } of bytes.pipeThrough(decoder)) {
      const isFolder = header.type === 'directory'
      const path = names.admit(header.name, isFolder ? 'folder' : 'file')
      if (isFolder) {
        if (path !== '') await makeFolder(path)
        await body.cancel()
        continue
      }
      await makeFolder(dirname(path))
      await room.takeFile()
      const member = { body, isKept: texts(path, header.size), room }
      members.set(path, await writeMember(join(folder, path), member))
    }
  } catch (error) {
    throw failure.error ?? explain(error)
  }
  return members
}

/** Decides before anything of a member is written, in the order of the archive. */
function createTextLimit(
  limits: ArchiveLimits,
  isKept: (path: string) => boolean,
  index: string | undefined,
): Unpacking['texts'] {
  let total = 0
  return (path, sizeBytes) => {
    if (!isKept(path) || sizeBytes > limits.textBytes) return false
    if (path === index) return true
    if (total + sizeBytes > limits.allTextBytes) return false
    total += sizeBytes
    return true
  }
}

const endlessRoom: DiskRoom = { take: async () => undefined, takeFile: async () => undefined }

async function writeMember(
  path: string,
  { body, isKept, room }: { body: AsyncIterable<Uint8Array>; isKept: boolean; room: DiskRoom },
): Promise<Member> {
  const hash = createHash('sha256')
  let sizeBytes = 0
  // wx: a name that the law let pass twice would fail here.
  const file = await open(path, 'wx', 0o600)
  try {
    for await (const chunk of body) {
      hash.update(chunk)
      sizeBytes += chunk.length
      if (!isKept) continue
      await room.take(chunk.length)
      await writeAll(file, chunk)
    }
    if (!isKept) await file.truncate(sizeBytes)
  } finally {
    await file.close()
  }
  return { sizeBytes, sha256: hash.digest('hex'), isKept }
}

async function writeAll(file: Awaited<ReturnType<typeof open>>, chunk: Uint8Array): Promise<void> {
  // write(2) may take less than it is given, on a full disk for example.
  for (let at = 0; at < chunk.length;) at += (await file.write(chunk, at)).bytesWritten
}

async function* framed(chunks: AsyncIterable<Buffer>, limits: ArchiveLimits): AsyncGenerator<Buffer> {
  const frames = createTarFrames(limits)
  for await (const chunk of chunks) {
    frames.look(chunk)
    yield chunk
  }
}

/** What stops the bytes is the reason; what the library makes of it is not. */
async function* noting(chunks: AsyncIterable<Buffer>, failure: { error?: unknown }): AsyncGenerator<Buffer> {
  try {
    yield* chunks
  } catch (error) {
    failure.error = error
    throw error
  }
}

/** What the library says about tar; the rest as it is. */
function explain(error: unknown): unknown {
  if (error instanceof AppError || (error as NodeJS.ErrnoException).code !== undefined) return error
  const { message } = error as Error
  if (/truncated/i.test(message))
    return refuse('Truncated', undefined, 'ends too early; copy it again', error)
  if (message.includes('EOF')) return refuse('TrailingBytes', undefined, 'has bytes after its end', error)
  return refuse('Damaged', undefined, `is no tar archive that can be read (${message})`, error)
}
