import { mkdir, open, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { clearLeftovers } from '../store/leftovers.ts'
import { syncFolder } from '../system/files.ts'
import type { Logger } from '../system/log.ts'
import { openStaging, type Staged, type Staging } from '../upload/staging.ts'

/** Folders on the disk that rows of the database name, one for each row. The content of a folder never changes. */
export interface KeptFolders extends Staging {
  /** The parent of the folders. */
  readonly folder: string
  /**
   * Moves a staged folder, whose files are synced, to its place, and then writes the row that names it. If that throws, the folder is removed.
   */
  keep(staged: Staged, writeRow: () => void): Promise<void>
  remove(uid: string): Promise<void>
  /** Opens a file of a folder; the caller closes it. @throws AppError NotFound where the folder was removed */
  open(uid: string, file: string): Promise<FileHandle>
}

/** The folder of content being received, below each folder of kept folders; a backup leaves it out. */
export const stagingName = 'staging'

/**
 * Opens the folders, and clears away leftovers of a killed daemon: staged folders, and folders that no row names.
 * @param options.named the uids that rows name
 * @param options.completeUntil see `LeftoverOptions`
 * @param options.onMissing called for a row without its folder, as after a restored backup that was made while the folder was removed
 */
export async function openKeptFolders({
  folder,
  named,
  completeUntil,
  onMissing,
  log,
}: {
  readonly folder: string
  readonly named: readonly string[]
  readonly completeUntil: number
  readonly onMissing: (uid: string) => void
  readonly log: Logger
}): Promise<KeptFolders> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const staging = await openStaging(join(folder, stagingName))
  const known = new Set<string>([stagingName, ...named])
  for (const uid of named) if (!(await isFolder(join(folder, uid)))) onMissing(uid)
  await clearLeftovers({ folder, isLeftover: (name) => !known.has(name), completeUntil, log })

  const remove = (uid: string) => rm(join(folder, uid), { recursive: true, force: true })
  return {
    folder,
    ...staging,
    remove,
    async keep(staged, writeRow) {
      await rename(staged.folder, join(folder, staged.uid))
      try {
        await syncFolder(folder)
        writeRow()
      } catch (error) {
        await remove(staged.uid)
        throw error
      }
    },
    open: (uid, file) => open(join(folder, uid, file)).catch(gone),
  }
}

const isFolder = async (path: string) => (await stat(path).catch(() => undefined))?.isDirectory() === true

function gone(error: NodeJS.ErrnoException): never {
  if (error.code !== 'ENOENT') throw error
  throw new AppError(generalErrors.NotFound, 'it was deleted meanwhile')
}
