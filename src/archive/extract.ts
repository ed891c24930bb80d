import { createHash } from 'node:crypto'
import { mkdir, open, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import type { DiskRoom } from './disk-room.ts'
import { decompress, type Flow } from './compression.ts'
import { withDefaults, type ArchiveLimits } from './limits.ts'
import { createMemberNames } from './member-names.ts'
import { readTar } from './tar-reader.ts'

/** A file of an archive after unpacking. */
export interface Member {
  readonly sizeBytes: number
  /** SHA-256 of its content, hex. */
  readonly sha256: string
  /** Whether the folder has its content; otherwise the folder has a sparse file of its size. */
  readonly isKept: boolean
}

/** An archive that was unpacked into a folder. */
export interface Extracted {
  readonly folder: string
  /** Files only, by path below the folder. */
  readonly members: ReadonlyMap<string, Member>
}

export interface ExtractOptions {
  /** The bytes of the archive; destroyed at the end. */
  readonly source: Readable
  /** Created by this function; its parent must exist. Nothing is written outside of it. */
  readonly folder: string
  readonly limits?: Partial<ArchiveLimits>
  /**
   * Selects the members whose content is kept; all by default. Other members are hashed and replaced by a sparse file
   * of their size; so are texts that exceed the limit for one text or for all texts.
   */
  readonly isKept?: (path: string) => boolean
  /** Selects members whose content is kept although they are no texts: the limits of texts do not count them. None by default. */
  readonly isData?: (path: string) => boolean
  /** The member that lists the others; it does not count towards the text limit, wherever it is in the archive. */
  readonly index?: string
  /** Checks the free space of the disk; without it a full disk shows only when a write fails. */
  readonly room?: DiskRoom
  readonly onFlow?: (flow: Flow) => void
}

/**
 * Unpacks a tar archive. Files are 0600 and folders 0700. Content is written to the disk as it arrives, so memory does
 * not grow with the archive. After a failure the folder is removed.
 * @throws AppError ArchiveInvalid, ArchiveDamaged or ArchiveTooLarge with details.reason and details.member; system
 * errors, for example `ENOSPC`, and errors of the source are thrown unchanged
 */
export async function extractArchive({
  source,
  folder,
  limits: given,
  isKept = () => true,
  isData = () => false,
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
    const keeps: Unpacking['keeps'] = (path, sizeBytes) => isData(path) || texts(path, sizeBytes)
    return { folder, members: await unpack({ source, folder, limits, room, keeps, onFlow }) }
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
  /** Whether to keep the content of a member of this size. */
  readonly keeps: (path: string, sizeBytes: number) => boolean
  readonly onFlow: ExtractOptions['onFlow']
}

async function unpack({
  source,
  folder,
  limits,
  room,
  keeps,
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
  for await (const { name, kind, sizeBytes, content } of readTar(
    decompress(source, limits, onFlow),
    limits,
  )) {
    const path = names.admit(name, kind)
    if (kind === 'folder') {
      if (path !== '') await makeFolder(path)
      continue
    }
    await makeFolder(dirname(path))
    await room.takeFile()
    const member = { content, isKept: keeps(path, sizeBytes), room }
    members.set(path, await writeMember(join(folder, path), member))
  }
  return members
}

/** Decides before the content of a member is written, in the order of the archive. */
function createTextLimit(
  limits: ArchiveLimits,
  isKept: (path: string) => boolean,
  index: string | undefined,
): Unpacking['keeps'] {
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
  { content, isKept, room }: { content: AsyncIterable<Uint8Array>; isKept: boolean; room: DiskRoom },
): Promise<Member> {
  const hash = createHash('sha256')
  let sizeBytes = 0
  // wx: should the name check ever accept a name twice, this open fails.
  const file = await open(path, 'wx', 0o600)
  try {
    for await (const chunk of content) {
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
  // write(2) may write less than requested, for example on a full disk.
  for (let at = 0; at < chunk.length;) at += (await file.write(chunk, at)).bytesWritten
}
