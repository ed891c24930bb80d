import { stat, statfs } from 'node:fs/promises'

/** Size of a file in bytes; undefined where it is missing or stat(2) fails. */
export async function sizeOf(file: string): Promise<number | undefined> {
  return (await stat(file).catch(() => undefined))?.size
}

/** Size of the file system of a folder and its free space for a user, in bytes; undefined where statfs(2) fails. */
export async function spaceOf(folder: string): Promise<{ sizeBytes: number; freeBytes: number } | undefined> {
  const space = await statfs(folder).catch(() => undefined)
  return space && { sizeBytes: space.blocks * space.bsize, freeBytes: space.bavail * space.bsize }
}
