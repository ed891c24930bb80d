import { randomBytes } from 'node:crypto'
import { statfsSync, statSync, unlinkSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Job } from '../root/room.ts'

/** Name of the file in a state folder that only takes space. */
export const reserveName = 'reserve'

/**
 * Reserved space on the disk of the state folder for the work that goes on when the disk is full: deletes, logins and heartbeats. It is a
 * file, so that no other program can take the space before. All other changes are refused while there is less than one and a half times the
 * reserve, whether it is still in the file or free.
 */
export interface DiskReserve {
  /** Whether a change may be made that is not one of those. True where the free space is unknown: a write then fails by itself. */
  admits(): boolean
  /** Frees its space where the disk is full; to be called before work that may use it. */
  makeRoom(): void
  /** Whether the file is there, whole or in part, or the disk is too small for one, or it was not to be written yet. */
  isHeld(): boolean
  /** Writes the file, or its missing part, as far as there is space for it. */
  fill(): Promise<void>
  /** Fills it again, and frees it for writes of the program itself. */
  readonly job: Job
}

const largestBytes = 33_554_432
// On a smaller disk the reserve would be too small to be of use.
const leastBytes = 2_097_152
const shareOfDisk = 16
const chunkBytes = 1_048_576

/** @param directory the state folder */
export function createDiskReserve(directory: string, log: Logger): DiskReserve {
  const file = join(directory, reserveName)
  let given = 0
  // Logged once.
  let isGone = false
  let hasStarted = false

  /** The free space, and the size that the reserve has on this disk; undefined where there is none. */
  function look(): { readonly freeBytes: number; readonly wholeBytes: number } | undefined {
    try {
      const { bavail, blocks, bsize } = statfsSync(directory)
      const wholeBytes = Math.min(largestBytes, Math.floor((blocks * bsize) / shareOfDisk))
      return wholeBytes < leastBytes ? undefined : { freeBytes: bavail * bsize, wholeBytes }
    } catch {
      return undefined
    }
  }

  const heldBytes = () => statSync(file, { throwIfNoEntry: false })?.size ?? 0

  function admits(): boolean {
    const found = look()
    if (!found) return true
    const { freeBytes, wholeBytes } = found
    const least = wholeBytes * 1.5
    return freeBytes >= least || freeBytes + heldBytes() >= least
  }

  function makeRoom(): void {
    const found = look()
    // Far more than the statements of a request write.
    if (!found || found.freeBytes >= found.wholeBytes / 16) return
    try {
      unlinkSync(file)
    } catch {
      // It was given back before.
      if (isGone || found.freeBytes >= found.wholeBytes / 64) return
      isGone = true
      log.error(
        { directory },
        'the reserve of the disk is used up, by this or another program: deletes, logins and heartbeats may fail too until there is space; make room, see df',
      )
      return
    }
    given += 1
    log.warn(
      { directory },
      'the disk of the state folder is full: its reserve is given back, so that deletes, logins and heartbeats go on, and other changes are refused; make room, see df',
    )
  }

  async function fill(): Promise<void> {
    hasStarted = true
    const found = look()
    if (!found || heldBytes() >= found.wholeBytes) return
    // Half of it stays free beside it. Where there is less, a part is written: another program would take it otherwise.
    const wholeBytes = Math.min(
      found.wholeBytes,
      heldBytes() + Math.floor((found.freeBytes - found.wholeBytes / 2) / chunkBytes) * chunkBytes,
    )
    if (wholeBytes <= heldBytes()) return
    const [before, wasGiven] = [given, given > 0]
    // A file system that compresses would store zeros in no space.
    const chunk = randomBytes(chunkBytes)
    const handle = await open(file, 'a', 0o600)
    try {
      for (let size = heldBytes(); size < wholeBytes && given === before;) {
        const { bytesWritten } = await handle.write(chunk, 0, Math.min(chunkBytes, wholeBytes - size))
        size += bytesWritten
      }
    } finally {
      await handle.close()
    }
    if (given !== before || heldBytes() < found.wholeBytes) return
    if (wasGiven) log.info({ directory }, 'the disk of the state folder has its reserve again')
    given = 0
    isGone = false
  }

  return {
    admits,
    makeRoom,
    fill,
    isHeld: () => !hasStarted || look() === undefined || heldBytes() > 0,
    job: {
      name: 'disk reserve',
      schedule: '*/10 * * * * *',
      stuckAfterMs: 60_000,
      async run() {
        makeRoom()
        // A disk that filled meanwhile keeps what was written.
        await fill().catch((error: unknown) => log.debug({ err: error }, 'the reserve could not be written'))
      },
    },
  }
}
