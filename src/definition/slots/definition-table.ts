import { createColumns } from '../../store/columns.ts'
import type { Database } from '../../store/database.ts'
import type { Problem } from '../definition.ts'

/**
 * `embedded`: placed by an installer, or in a content bundle. `overridden`: uploaded. `update`: uploaded or in a content bundle,
 * while a cluster exists.
 */
export const slotNames = ['embedded', 'overridden', 'update'] as const
/** `platform`: what the platform of this host wants of it; the API does not show it. */
export type SlotName = (typeof slotNames)[number] | 'platform'

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

/** Which definition is in which slot. A change is durable when its function returns. */
export interface DefinitionTable {
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
