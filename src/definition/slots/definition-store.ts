import { createColumns } from '../../store/columns.ts'
import type { Database } from '../../store/database.ts'
import type { Problem } from '../definition.ts'
import { mkdir, open, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { clearLeftovers } from '../../store/leftovers.ts'
import { syncFolder } from '../../system/files.ts'
import type { Logger } from '../../system/log.ts'
import { openStaging, type Staged, type Staging } from '../../upload/staging.ts'
import type { SlotName } from './slot-names.ts'

/** The definition in a slot. */
export interface SlotDefinition {
  readonly uid: string
  readonly slot: SlotName
  readonly name: string
  readonly version: string
  /** Of the archive, hex. */
  readonly sha256: string
  readonly sizeBytes: number
  /** As the client named it, or the name of its bundle; only shown. */
  readonly fileName: string
  /** Milliseconds since 1970, UTC. */
  readonly addedAt: number
  /** The state of the file or bundle from which it was made (`Origin`); empty for uploads. */
  readonly source: string
  /** Warnings. */
  readonly problems: readonly Problem[]
}

/** The definition of each slot. A change is durable when its function returns. */
interface DefinitionTable {
  list(): SlotDefinition[]
  find(slot: SlotName): SlotDefinition | undefined
  /** Puts a definition into its slot. @returns the one that it replaced */
  put(definition: SlotDefinition): SlotDefinition | undefined
  /** Empties a slot. @returns the removed definition */
  remove(slot: SlotName): SlotDefinition | undefined
}

const columns = createColumns<keyof SlotDefinition>({
  slot: 'slot',
  uid: 'uid',
  name: 'name',
  version: 'version',
  sha256: 'sha256',
  sizeBytes: 'size_bytes',
  fileName: 'file_name',
  addedAt: 'added_at',
  source: 'source',
  problems: 'problems',
})

export function createDefinitionTable({ sql, transaction }: Database): DefinitionTable {
  const all = `SELECT ${columns.selected()} FROM definition`
  const selectAll = sql.prepare(`${all} ORDER BY slot`)
  const selectOne = sql.prepare(`${all} WHERE slot = ?`)
  const replace = sql.prepare(`INSERT OR REPLACE INTO definition ${columns.inserted}`)
  const remove = sql.prepare('DELETE FROM definition WHERE slot = ?')
  const find = (slot: SlotName) => {
    const row = selectOne.get(slot)
    return row && toDefinition(row)
  }
  return {
    list: () => selectAll.all().map(toDefinition),
    find,
    put: (definition) =>
      transaction(() => {
        const before = find(definition.slot)
        const problems = JSON.stringify(definition.problems)
        replace.run(...columns.valuesOf({ ...definition, problems }))
        return before
      }),
    remove: (slot) =>
      transaction(() => {
        const before = find(slot)
        remove.run(slot)
        return before
      }),
  }
}

function toDefinition(row: Record<string, unknown>): SlotDefinition {
  const { problems, ...rest } = row as unknown as Omit<SlotDefinition, 'problems'> & { problems: string }
  return { ...rest, problems: JSON.parse(problems) as Problem[] }
}

/**
 * Remembers which bundles need not be offered as an update any more. The slot `update` cannot say so, since its row goes when
 * an administrator discards the update.
 */
export interface OfferedUpdates {
  /** Bundles published at this time or before have been offered; milliseconds since 1970, UTC. */
  until(): number
  set(publishedAt: number): void
}

export function createOfferedUpdates({ sql }: Database): OfferedUpdates {
  const select = sql.prepare('SELECT published_at FROM definition_offered')
  const replace = sql.prepare('INSERT OR REPLACE INTO definition_offered VALUES (1, ?)')
  return {
    until: () => (select.get() as { published_at: number } | undefined)?.published_at ?? 0,
    set: (publishedAt) => void replace.run(publishedAt),
  }
}

/** Definitions on the disk, one folder each, and the one of each slot. */
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
