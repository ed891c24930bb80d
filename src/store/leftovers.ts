import { mkdir, readdir, rename, rm } from 'node:fs/promises'
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
   * Whether the database is known to have every row: then a leftover is what a killed daemon left. One that began empty, or lost its last
   * commits, says nothing of what belongs to it.
   */
  readonly isComplete: boolean
  readonly log: Logger
}

/**
 * Clears away the folders that no row names. They are removed only where the database is complete; otherwise they are moved to
 * `aside/<time>/…` in the state folder, and the journal says where.
 */
export async function clearLeftovers({
  folder,
  isLeftover,
  isComplete,
  log,
}: LeftoverOptions): Promise<void> {
  const names = (await readdir(folder)).filter(isLeftover)
  if (names.length === 0) return
  if (isComplete) {
    for (const name of names) await rm(join(folder, name), { recursive: true, force: true })
    return
  }
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
