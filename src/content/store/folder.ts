import { mkdir, rm, stat, unlink, readdir, readFile, realpath, statfs } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { replaceFile, sweepTemporary } from '../../system/files.ts'
import { mountsToward, mountTree, parseMountinfo, type Mount } from '../../system/mountinfo.ts'
import { NamedFileUnusable } from '../../errors/start-error.ts'
import { storageFull } from '../../errors/system-reason.ts'
import type { ContentSettings } from '../config.ts'
import type { ContentSpace } from './content-store.ts'

/** Paths in the folder of the content. */
export interface ContentFolder {
  readonly root: string
  /** The blobs that records name, each named by its digest in hex. */
  readonly blobs: string
  /** The record of each published bundle, `<uid>.jsonl`. */
  readonly bundles: string
  readonly uploads: string
  /** A file for each damaged blob, named by its digest in hex: its content if there was one, else empty. */
  readonly damaged: string
  readonly indexFile: string
  readonly pinsFile: string
  /** The highest number of a publication. */
  readonly publicationFile: string
}

/** The folder of the content. @param directory `content.directory`; empty by default */
export const contentRoot = (directory: string, stateDirectory: string) =>
  directory || join(stateDirectory, 'content')

/** @param root `content.directory` */
export const contentFolder = (root: string): ContentFolder => ({
  root,
  blobs: join(root, 'blobs', 'sha256'),
  bundles: join(root, 'bundles'),
  uploads: join(root, 'uploads'),
  damaged: join(root, 'damaged'),
  indexFile: join(root, 'index.json'),
  pinsFile: join(root, 'pins.json'),
  publicationFile: join(root, 'last-publication'),
})

const recordEnd = '.jsonl'
const asideEnd = '.jsonl.damaged'

/** @returns the uid, if this is the name of a record */
export const uidOfRecord = (name: string) =>
  name.endsWith(recordEnd) ? name.slice(0, -recordEnd.length) : undefined
export const isAside = (name: string) => name.endsWith(asideEnd)
export const recordFile = ({ bundles }: ContentFolder, uid: string) => join(bundles, uid + recordEnd)
/** Path at which a damaged record is kept. */
export const asideFile = ({ bundles }: ContentFolder, uid: string) => join(bundles, uid + asideEnd)

export const hexOf = (digest: string) => digest.slice(digest.indexOf(':') + 1)
export const isHex = (name: string) => /^[0-9a-f]{64}$/.test(name)

/** Makes the missing parts of the folder, and removes the temporary files of a killed daemon. */
export async function makeContentFolder(folder: ContentFolder): Promise<void> {
  for (const each of [folder.root, folder.blobs, folder.bundles, folder.uploads, folder.damaged])
    await mkdir(each, { recursive: true, mode: 0o700 })
  await sweepTemporary(folder.root)
  const layout = join(folder.root, 'oci-layout')
  if (!(await stat(layout).catch(missing))) await replaceFile(layout, '{"imageLayoutVersion":"1.0.0"}', 0o600)
}

// More than a file system keeps beside the name of a file.
const probe = Buffer.alloc(65_536)

/** Writes a file, syncs it and removes it. @throws the system's error, also of a full disk */
export async function requireWritable({ root }: ContentFolder): Promise<void> {
  const file = join(root, 'probe')
  try {
    await replaceFile(file, probe, 0o600)
  } finally {
    await unlink(file).catch(missing)
  }
}

/** For `catch`: a file that does not exist is no error. */
export function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

/** Removes a blob, or a folder that has taken its name; one that is missing is no error. */
export async function removeBlob(file: string): Promise<void> {
  try {
    await unlink(file)
  } catch (error) {
    const failure = error as NodeJS.ErrnoException
    if (failure.code === 'EISDIR') await rm(file, { recursive: true, force: true })
    else missing(failure)
  }
}

/**
 * Whether a file system is mounted at the folder itself. A unit that may write there has the folder mounted on itself
 * (`ReadWritePaths`), which does not count.
 */
export function isMounted(mounts: readonly Mount[], folder: string): boolean {
  const passed = mountsToward(mountTree(mounts), folder)
  const mount = passed.at(-1)
  if (mount?.mountPoint !== folder || mount.fileSystemType === 'autofs') return false
  const below = passed.findLast(({ mountPoint }) => mountPoint !== folder)
  if (below?.device !== mount.device) return true
  return mount.root !== join(below.root, relative(below.mountPoint, folder))
}

/**
 * @throws NamedFileUnusable if nothing is mounted at the folder; the error EACCES where only root may access it
 */
export async function requireMount(folder: string): Promise<void> {
  // Reading a folder has an automount done.
  await readdir(folder).catch(() => undefined)
  const real = await realpath(folder).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'EACCES') throw error
    return folder
  })
  if (!isMounted(parseMountinfo(await readFile('/proc/self/mountinfo', 'utf8')), real))
    throw new NamedFileUnusable(
      `content.requireMount: no file system is mounted at ${folder}; see findmnt ${folder}, mount the disk and start the daemon again with systemctl start edgehostd`,
    )
}

/** The file system of the content. */
export interface FileSystemRoom {
  readonly totalBytes: number
  /** Bytes that the daemon may use, before the reserve. */
  readonly freeBytes: number
  readonly reserveBytes: number
  /** Bytes that running uploads have reserved. */
  readonly reservedBytes: number
}

/** @param root folder of the content */
export function createContentSpace(
  root: string,
  { percent, leastBytes }: ContentSettings['reserve'],
): ContentSpace & { read(): Promise<FileSystemRoom> } {
  const reserved = new Map<string, number>()

  async function read(): Promise<FileSystemRoom> {
    const { bsize, blocks, bavail } = await statfs(root)
    const totalBytes = blocks * bsize
    return {
      totalBytes,
      freeBytes: bavail * bsize,
      reserveBytes: Math.max(Math.ceil((totalBytes * percent) / 100), leastBytes),
      reservedBytes: [...reserved.values()].reduce((sum, bytes) => sum + bytes, 0),
    }
  }
  async function freeBytes(): Promise<number> {
    const room = await read()
    return room.freeBytes - room.reserveBytes - room.reservedBytes
  }

  return {
    read,
    freeBytes,
    reserveBytes: async () => (await read()).reserveBytes,
    async reserve(uploadUid, bytes) {
      const before = reserved.get(uploadUid) ?? 0
      const lacking = bytes - before - (await freeBytes())
      if (bytes > before && lacking > 0) throw storageFull(lacking)
      reserved.set(uploadUid, bytes)
    },
    release: (uploadUid) => void reserved.delete(uploadUid),
  }
}
