import { randomUUID } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { refuseFull } from '../errors/system-reason.ts'

/** A temporary folder that is either moved into a store or removed. */
export interface Staged {
  readonly uid: string
  readonly folder: string
}

/** Holds uploads until a store takes them. */
export interface Staging {
  /** Creates an empty folder. @throws AppError StorageFull */
  stage(): Promise<Staged>
  removeStaged(staged: Staged): Promise<void>
}

/** Creates the folder, and removes leftovers of a killed daemon. */
export async function openStaging(folder: string): Promise<Staging> {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true, mode: 0o700 })
  return {
    async stage() {
      const uid = randomUUID()
      const staged = join(folder, uid)
      await mkdir(staged, { mode: 0o700 }).catch(refuseFull)
      return { uid, folder: staged }
    },
    removeStaged: ({ folder: staged }) => rm(staged, { recursive: true, force: true }),
  }
}
