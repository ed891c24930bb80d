import { stat, statfs, lstat, open, readdir, readFile, rename, unlink } from 'node:fs/promises'
import { randomBytes } from 'node:crypto'
import { constants, openSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** Size of a file in bytes; undefined where it is missing or stat(2) fails. */
export async function sizeOf(file: string): Promise<number | undefined> {
  return (await stat(file).catch(() => undefined))?.size
}

/** Room of the file system of a folder. */
export interface FileSystemSpace {
  readonly sizeBytes: number
  /** For a user. */
  readonly freeBytes: number
  /** Number of files that it can have, and of free ones; absent where it makes inodes on demand, as btrfs does. */
  readonly inodes?: { readonly total: number; readonly free: number }
}

/** Undefined where statfs(2) fails. */
export async function spaceOf(folder: string): Promise<FileSystemSpace | undefined> {
  const space = await statfs(folder).catch(() => undefined)
  return (
    space && {
      sizeBytes: space.blocks * space.bsize,
      freeBytes: space.bavail * space.bsize,
      ...(space.files > 0 ? { inodes: { total: space.files, free: space.ffree } } : {}),
    }
  )
}

// Beside the target, since rename(2) is atomic only within one file system.
const temporaryName = /^\.(.+)\.[0-9a-f]{16}\.tmp$/

/** The entry at the path of a file of ours is no regular file. */
export class NotReplaceable extends Error {
  override readonly name = 'NotReplaceable'
}

/**
 * Replaces a file atomically: a reader finds the old content or the new one, even after a power cut.
 * On return the content and its name are on the disk.
 * @param data a long text may come in pieces
 * @param mode permission bits, set regardless of the umask
 * @param options.sync false for content that may be lost in a power cut: after a kill the file is still the old or the new one
 * @throws NotReplaceable when the target exists and is not a regular file (a link is not one), and the system's error as it is,
 *   for example `ENOSPC`; the old content is then unchanged and no temporary file is left
 */
export async function replaceFile(
  path: string,
  data: string | Uint8Array | AsyncIterable<string>,
  mode: number,
  { sync = true }: { readonly sync?: boolean } = {},
): Promise<void> {
  const present = await lstat(path).catch(missing)
  if (present && !present.isFile())
    throw new NotReplaceable(`${path} is not a regular file; it is not replaced`)
  const folder = dirname(path)
  const temporary = join(folder, `.${basename(path)}.${randomBytes(8).toString('hex')}.tmp`)
  const file = await open(temporary, 'wx', 0o600)
  try {
    try {
      await file.writeFile(data)
      await file.chmod(mode)
      if (sync) await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, path)
  } catch (error) {
    await unlink(temporary).catch(missing)
    throw error
  }
  if (sync) await syncFolder(folder)
}

/** Reads a JSON file of ours; undefined where it is missing or not whole. @throws the system's error as it is */
export async function readJsonFile<T>(path: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as T
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Removes the temporary files that a killed `replaceFile` left in a folder. Only for the start, while nothing writes there.
 * @param target only those for the file of this name, in a folder of several programs
 * @returns the number of removed files; 0 when the folder is missing
 */
export async function sweepTemporary(folder: string, target?: string): Promise<number> {
  const entries = (await readdir(folder, { withFileTypes: true }).catch(missing)) ?? []
  const left = entries.filter((entry) => {
    const of = entry.isFile() ? temporaryName.exec(entry.name)?.[1] : undefined
    return of !== undefined && of === (target ?? of)
  })
  await Promise.all(left.map((entry) => unlink(join(folder, entry.name))))
  return left.length
}

/** fsync(2) of a folder: a new name is on the disk only once its folder is. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Whether a path exists, and this process may see it; links are followed. */
export const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )

/**
 * Opens a small file that is written in place, and makes it where it is missing; never through a link, and never a pipe that would block.
 * @returns its descriptor
 */
export const openInPlace = (file: string): number =>
  openSync(file, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600)

const syncedAtOnce = 16

/** fsync(2) of every file and folder below a folder, and of the folder itself. */
export async function syncTree(folder: string): Promise<void> {
  // Several at once share a commit of the journal: 45,000 small files took a minute one after the other.
  const entries = (await readdir(folder, { recursive: true, withFileTypes: true })).values()
  const syncNext = async () => {
    for (const entry of entries)
      if (entry.isFile() || entry.isDirectory()) await syncFolder(join(entry.parentPath, entry.name))
  }
  await Promise.all(Array.from({ length: syncedAtOnce }, syncNext))
  await syncFolder(folder)
}

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
