import { mkdir, open, readdir, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from '../../system/files.ts'
import type { Logger } from '../../system/log.ts'
import { openStaging, type Staged, type Staging } from '../../upload/staging.ts'
import type { DefinitionTable, SlotDefinition, SlotName } from './definition-table.ts'

/** Definitions on the disk, a folder each, and which one is in which slot. */
export interface DefinitionStore extends Staging {
  /** Where definitions lie. */
  readonly folder: string
  list(): SlotDefinition[]
  find(slot: SlotName): SlotDefinition | undefined
  /** A file of a definition, to be closed; nothing once the definition has gone. It may go while it is read. */
  open(uid: string, file: string): Promise<FileHandle | undefined>
  /**
   * Puts what was staged into its slot, in one step. All files in it have to be on the disk.
   * @param signal asked last of all; @throws its reason, and then the slot holds what it held
   */
  commit(staged: Staged, definition: SlotDefinition, signal?: AbortSignal): Promise<void>
  /** Empties a slot. @returns what was in it */
  remove(slot: SlotName): Promise<SlotDefinition | undefined>
}

const stagingName = 'staging'

/**
 * Opens the store and clears away what a killed daemon left: uploads that were not finished, and definitions that are in
 * no slot. A slot whose files have gone is emptied.
 */
export async function openDefinitionStore({
  folder,
  table,
  log,
}: {
  readonly folder: string
  readonly table: DefinitionTable
  readonly log: Logger
}): Promise<DefinitionStore> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const staging = await openStaging(join(folder, stagingName))
  for (const { slot, uid, name } of table.list()) {
    if (await isFolder(join(folder, uid))) continue
    table.remove(slot)
    log.error({ slot, name }, 'the files of a definition have gone; upload it again')
  }
  const known = new Set<string>([stagingName, ...table.list().map(({ uid }) => uid)])
  for (const name of await readdir(folder)) {
    if (!known.has(name)) await rm(join(folder, name), { recursive: true, force: true })
  }

  const forget = async (definition: SlotDefinition | undefined): Promise<void> => {
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
        // From here on it is the one; what is left of the other goes now or at the next start.
        await forget(table.put(definition))
      } catch (error) {
        if (table.find(definition.slot)?.uid !== staged.uid) await rm(own, { recursive: true, force: true })
        throw error
      }
    },
    async remove(slot) {
      const removed = table.remove(slot)
      await forget(removed)
      return removed
    },
  }
}

const isFolder = async (path: string) => (await stat(path).catch(() => undefined))?.isDirectory() === true

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
