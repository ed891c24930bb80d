import { statfs } from 'node:fs/promises'
import type { DiskRoom } from '../archive/disk-room.ts'
import { noInodes, storageFull } from '../errors/system-reason.ts'

export interface DiskRoomOptions {
  readonly folder: string
  /** The space that must stay free. */
  readonly reserveBytes: number
}

// Checked again after this many bytes, because other programs write too.
const stepBytes = 1_048_576
// Reserved for concurrent writers: this upload, another one, the daemon.
const marginBytes = 4 * stepBytes
// A file or a folder takes at least one block.
const blockBytes = 4_096
const reservedInodes = 1_000

/**
 * Checks the free space while a folder is written. If the free space is unknown, the write itself fails when the disk
 * is full.
 */
export function createDiskRoom({ folder, reserveBytes }: DiskRoomOptions): DiskRoom {
  const kept = reserveBytes + Math.min(marginBytes, Math.floor(reserveBytes / 64))
  let left = 0

  async function check(bytes: number): Promise<void> {
    const space = await statfs(folder).catch(() => undefined)
    // File systems that create inodes on demand report 0 of 0.
    if (space && space.files > 0 && space.ffree < Math.min(reservedInodes, space.files / 20)) throw noInodes()
    const free = space ? space.bavail * space.bsize - kept : Number.MAX_SAFE_INTEGER
    if (free < bytes) throw storageFull(bytes - free)
    left = Math.max(bytes, Math.min(free, stepBytes))
  }

  const take = async (bytes: number): Promise<void> => {
    if (left < bytes) await check(bytes)
    left -= bytes
  }
  return { take, takeFile: () => take(blockBytes) }
}
