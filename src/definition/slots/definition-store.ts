import { mkdir, open, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { clearLeftovers } from '../../store/leftovers.ts'
import { syncFolder } from '../../system/files.ts'
import type { Logger } from '../../system/log.ts'
import { openStaging, type Staged, type Staging } from '../../upload/staging.ts'
import type { DefinitionTable, SlotDefinition, SlotName } from './definition-table.ts'

/** Definitions on the disk, one folder each, and which one is in which slot. */
export interface DefinitionStore extends Staging {
  /** The parent of the folders of definitions. */
  readonly folder: string
  list(): SlotDefinition[]
  find(slot: SlotName): SlotDefinition | undefined
  /**
   * Opens a file of a definition. The caller closes it. The definition may be removed while the file is read.
   * @returns undefined if the definition was removed
   */
  open(uid: string, file: string): Promise<FileHandle | undefined>
  /**
   * Puts a staged definition into its slot, in one step. Its files have to be synced to the disk.
   * @param signal checked last. @throws its reason if it is aborted; the slot is then unchanged
   */
  commit(staged: Staged, definition: SlotDefinition, signal?: AbortSignal): Promise<void>
  /** Empties a slot. @returns the removed definition */
  remove(slot: SlotName): Promise<SlotDefinition | undefined>
}

const stagingName = 'staging'

/**
 * Opens the store and clears away what a killed daemon left: unfinished uploads, and definitions that are in no slot. A slot
 * whose files are missing is emptied.
 */
export async function openDefinitionStore({
  folder,
  table,
  completeUntil,
  log,
}: {
  readonly folder: string
  readonly table: DefinitionTable
  /** See `LeftoverOptions`. */
  readonly completeUntil: number
  readonly log: Logger
}): Promise<DefinitionStore> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const staging = await openStaging(join(folder, stagingName))
  for (const { slot, uid, name } of table.list()) {
    if (await isFolder(join(folder, uid))) continue
    table.remove(slot)
    log.error({ slot, name }, 'the files of a definition are missing; upload it again')
  }
  const known = new Set<string>([stagingName, ...table.list().map(({ uid }) => uid)])
  await clearLeftovers({ folder, isLeftover: (name) => !known.has(name), completeUntil, log })

  const removeFolder = async (definition: SlotDefinition | undefined): Promise<void> => {
    if (definition) await rm(join(folder, definition.uid), { recursive: true, force: true })
  }

  return {
    folder,
    list: table.list,
    find: table.find,
    open: (uid, file) => open(join(folder, uid, file)).catch(missing),
    ...staging,
    async commit(staged, definition, signal) {
      const own = join(folder, staged.uid)
      await rename(staged.folder, own)
      try {
        await syncFolder(folder)
        signal?.throwIfAborted()
        // From here on the new definition is in the slot. The old folder is removed now or, if that fails, at the next start.
        await removeFolder(table.put(definition))
      } catch (error) {
        if (table.find(definition.slot)?.uid !== staged.uid) await rm(own, { recursive: true, force: true })
        throw error
      }
    },
    async remove(slot) {
      const removed = table.remove(slot)
      await removeFolder(removed)
      return removed
    },
  }
}

const isFolder = async (path: string) => (await stat(path).catch(() => undefined))?.isDirectory() === true

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
