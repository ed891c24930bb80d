import { createColumns } from '../../store/columns.ts'
import type { Database } from '../../store/database.ts'
import type { Problem } from '../definition.ts'

/** `embedded`: placed by an installer. `overridden`: uploaded. `update`: uploaded while a cluster exists. */
export const slotNames = ['embedded', 'overridden', 'update'] as const
export type SlotName = (typeof slotNames)[number]

/** The definition in a slot. */
export interface SlotDefinition {
  readonly uid: string
  readonly slot: SlotName
  readonly name: string
  readonly version: string
  /** Of the archive, hex. */
  readonly sha256: string
  readonly sizeBytes: number
  /** What the client called it; only to show. */
  readonly fileName: string
  /** Milliseconds since 1970, UTC. */
  readonly addedAt: number
  /** Which state of the embedded file it was made from; empty for uploads. */
  readonly source: string
  /** Warnings. */
  readonly problems: readonly Problem[]
}

/** Which definition is in which slot; what it returns from is durable. */
export interface DefinitionTable {
  list(): SlotDefinition[]
  find(slot: SlotName): SlotDefinition | undefined
  /** Puts it in its slot, in the place of the one that was there, which it returns. */
  put(definition: SlotDefinition): SlotDefinition | undefined
  /** Empties the slot. */
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
