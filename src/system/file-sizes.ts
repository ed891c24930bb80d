import { stat, statfs } from 'node:fs/promises'

/** Size in bytes; undefined for a file that is not there or cannot be asked. */
export async function sizeOf(file: string): Promise<number | undefined> {
  return (await stat(file).catch(() => undefined))?.size
}

/** Size of the file system of a folder, and what is free for a user, in bytes; undefined where it cannot be asked. */
export async function spaceOf(folder: string): Promise<{ sizeBytes: number; freeBytes: number } | undefined> {
  const space = await statfs(folder).catch(() => undefined)
  return space && { sizeBytes: space.blocks * space.bsize, freeBytes: space.bavail * space.bsize }
}
