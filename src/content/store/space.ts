import { statfs } from 'node:fs/promises'
import { storageFull } from '../../errors/storage-full.ts'
import type { ContentSettings } from '../config.ts'
import type { ContentSpace } from './content-store.ts'

/** The file system of the content. */
export interface FileSystemRoom {
  readonly totalBytes: number
  /** What the daemon may use, before the reserve. */
  readonly freeBytes: number
  readonly reserveBytes: number
  /** What running uploads have reserved. */
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
