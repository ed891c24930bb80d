import { statfs } from 'node:fs/promises'
import type { DiskRoom } from '../archive/disk-room.ts'
import { noInodes, storageFull } from '../errors/storage-full.ts'

export interface DiskRoomOptions {
  readonly folder: string
  /** What stays free. */
  readonly reserveBytes: number
}

// Between two looks at the disk; others write meanwhile.
const stepBytes = 1_048_576
// What is left to those who write at the same time: the upload itself, another one, the daemon.
const marginBytes = 4 * stepBytes
// A file or a folder takes a block at least.
const blockBytes = 4_096
const reservedInodes = 1_000

/** Looks at the disk of a folder as it is written. Where nothing can be said about it, the write itself will. */
export function createDiskRoom({ folder, reserveBytes }: DiskRoomOptions): DiskRoom {
  const kept = reserveBytes + Math.min(marginBytes, Math.floor(reserveBytes / 64))
  let left = 0

  async function look(bytes: number): Promise<void> {
    const space = await statfs(folder).catch(() => undefined)
    // Some file systems make inodes as they are needed, and say 0 of 0.
    if (space && space.files > 0 && space.ffree < Math.min(reservedInodes, space.files / 20)) throw noInodes()
    const free = space ? space.bavail * space.bsize - kept : Number.MAX_SAFE_INTEGER
    if (free < bytes) throw storageFull(bytes - free)
    left = Math.max(bytes, Math.min(free, stepBytes))
  }

  const take = async (bytes: number): Promise<void> => {
    if (left < bytes) await look(bytes)
    left -= bytes
  }
  return { take, takeFile: () => take(blockBytes) }
}
