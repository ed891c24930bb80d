import { lstat, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Logger } from 'pino'
import { syncFolder } from '../system/files.ts'
import { asideName } from './database-name.ts'

export interface LeftoverOptions {
  /** The parent of the folders, in the state folder. */
  readonly folder: string
  /** Whether a name is a leftover: one that no row of the database names. */
  readonly isLeftover: (name: string) => boolean
  /**
   * Milliseconds since 1970 by which the database is known to have every row: a leftover of that time comes from a killed daemon. A
   * database that began empty, or lost its last commits, has -Infinity; one that is an old copy knows nothing of later rows.
   */
  readonly completeUntil: number
  readonly log: Logger
}

// A killed daemon may have placed a folder so long after the newest record: the login for its upload.
const workMs = 3_600_000

/**
 * Clears away the folders that no row names. They are removed only where the database is complete for their time; otherwise they are moved
 * to `aside/<time>/…` in the state folder, and the journal says where.
 */
export async function clearLeftovers({
  folder,
  isLeftover,
  completeUntil,
  log,
}: LeftoverOptions): Promise<void> {
  const leftovers = (await readdir(folder)).filter(isLeftover)
  const names: string[] = []
  for (const name of leftovers) {
    const { ctimeMs } = await lstat(join(folder, name))
    if (ctimeMs <= completeUntil + workMs) await rm(join(folder, name), { recursive: true, force: true })
    else names.push(name)
  }
  if (names.length === 0) return
  const stamp = new Date().toISOString().replaceAll(':', '')
  const place = join(dirname(folder), asideName, stamp, basename(folder))
  await mkdir(place, { recursive: true, mode: 0o700 })
  for (const name of names) await rename(join(folder, name), join(place, name))
  await syncFolder(place)
  await syncFolder(folder)
  log.warn(
    { folder, aside: place, count: names.length },
    'the database is not known to be complete, and does not name these folders: they are moved aside; remove them when nothing of them is missed',
  )
}
