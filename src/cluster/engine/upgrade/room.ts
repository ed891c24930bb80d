import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isThere } from '../../../system/files.ts'

/** What is written to a file system, and the room that it has. */
export interface RoomNeed {
  /** A folder in it, for operators. */
  readonly folder: string
  readonly neededBytes: number
  readonly freeBytes: number
}

/** So much stays free for everything else on the host. */
const reserveBytes = 256 * 1_048_576

/** Why there is no room; undefined where there is. Pure. */
export function lackOfRoom(needs: readonly RoomNeed[]): string | undefined {
  const short = needs.find(({ neededBytes, freeBytes }) => neededBytes + reserveBytes > freeBytes)
  return (
    short &&
    `the file system of ${short.folder} has ${mebibytes(short.freeBytes)} free, and an upgrade that can be taken back needs ${mebibytes(short.neededBytes)} there, and ${mebibytes(reserveBytes)} for everything else; make room, then apply the change again`
  )
}

/**
 * What an upgrade writes, by file system: the copy; the data of etcd once more where it is, if the copy is restored; and the copy of it that
 * kubeadm makes by itself.
 */
export async function roomNeeds(
  wishes: readonly (readonly [folder: string, bytes: number])[],
): Promise<readonly RoomNeed[]> {
  const needs = new Map<number, RoomNeed>()
  for (const [folder, bytes] of wishes) {
    const present = await presentFolder(folder)
    const { dev } = await stat(present)
    const { bavail, bsize } = await statfs(present)
    const known = needs.get(dev)
    needs.set(dev, {
      folder: known?.folder ?? folder,
      neededBytes: (known?.neededBytes ?? 0) + bytes,
      freeBytes: bavail * bsize,
    })
  }
  return [...needs.values()]
}

/** The folder itself, or the next one above it that is there. */
async function presentFolder(folder: string): Promise<string> {
  return (await isThere(folder)) ? folder : presentFolder(dirname(folder))
}

const mebibytes = (bytes: number) => `${Math.ceil(bytes / 1_048_576)} MiB`
