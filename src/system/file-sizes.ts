import { stat, statfs } from 'node:fs/promises'

/** Size of a file in bytes; undefined where it is missing or stat(2) fails. */
export async function sizeOf(file: string): Promise<number | undefined> {
  return (await stat(file).catch(() => undefined))?.size
}

/** Room of the file system of a folder. */
export interface FileSystemSpace {
  readonly sizeBytes: number
  /** For a user. */
  readonly freeBytes: number
  /** How many files it can have, and how many more; absent where it makes inodes on demand, as btrfs does. */
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
