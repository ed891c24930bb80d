import type { InventoryEntry } from '../../kubernetes/inventory.ts'
import type { Database } from '../../store/database.ts'

/** Stored record of a started pack. */
export interface PackRecord {
  readonly id: string
  /** Digest that was applied whole; empty after a part of it only. */
  readonly appliedDigest: string
  readonly partDigest: string
  /** Keys of the steps that are done for `partDigest`. */
  readonly doneSteps: readonly string[]
  /** Digest whose workloads were available once; empty before. */
  readonly availableDigest: string
  /** Objects of its manifests that may be in the cluster. */
  readonly inventory: readonly InventoryEntry[]
  /** Releases of its charts that may be in the cluster, as `namespace/name`. */
  readonly charts: readonly string[]
  /** Objects of its charts. */
  readonly releases: readonly InventoryEntry[]
  /** Time of its first done step, and of its availability; milliseconds since 1970. */
  readonly startedAt: number | null
  readonly endedAt: number | null
}

/** The packs of the cluster, as far as they are applied, and the namespaces that were made for them. */
export interface PackStore {
  list(): readonly PackRecord[]
  find(id: string): PackRecord | undefined
  put(record: PackRecord): void
  /** Stores objects that may be in the cluster, before they are there; the next commit syncs it. */
  putInventory(id: string, inventory: readonly InventoryEntry[]): void
  remove(id: string): void
  /** No applied object is known to be there; possible ones stay known. */
  doubt(): void
  /** Namespaces that were not there before a pack was applied. */
  namespaces(): readonly string[]
  addNamespace(name: string): void
  removeNamespace(name: string): void
  clear(): void
}

/** The record of a pack of which nothing is stored. */
export const newPack = (id: string): PackRecord => ({
  id,
  appliedDigest: '',
  partDigest: '',
  doneSteps: [],
  availableDigest: '',
  inventory: [],
  charts: [],
  releases: [],
  startedAt: null,
  endedAt: null,
})

interface Row {
  readonly id: string
  readonly applied_digest: string
  readonly part_digest: string
  readonly done_steps: string
  readonly available_digest: string
  readonly inventory: string
  readonly charts: string
  readonly releases: string
  readonly started_at: number | null
  readonly ended_at: number | null
}

export function createPackStore({ sql, transaction, transactionBeforeNext }: Database): PackStore {
  const read = sql.prepare('SELECT * FROM cluster_pack WHERE id = ?')
  const readAll = sql.prepare('SELECT * FROM cluster_pack ORDER BY id')
  const replace = sql.prepare(
    `INSERT OR REPLACE INTO cluster_pack (id, applied_digest, part_digest, done_steps, available_digest, inventory, releases,
    started_at, ended_at, charts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const find = (id: string) => {
    const row = read.get(id) as Row | undefined
    return row && recordOf(row)
  }
  const write = (record: PackRecord) => {
    const { id, appliedDigest, partDigest, doneSteps, availableDigest, inventory, releases } = record
    replace.run(
      ...[id, appliedDigest, partDigest, JSON.stringify(doneSteps), availableDigest],
      ...[JSON.stringify(inventory), JSON.stringify(releases), record.startedAt, record.endedAt],
      JSON.stringify(record.charts),
    )
  }
  return {
    list: () => (readAll.all() as unknown as readonly Row[]).map(recordOf),
    find,
    put: (record) => transaction(() => write(record)),
    putInventory(id, inventory) {
      // A power cut may lose it. Then the step is not done either, and stores it again.
      transactionBeforeNext(() => write({ ...(find(id) ?? newPack(id)), inventory }))
    },
    remove: (id) => transaction(() => void sql.prepare('DELETE FROM cluster_pack WHERE id = ?').run(id)),
    doubt: () =>
      transaction(() =>
        sql.exec(
          "UPDATE cluster_pack SET applied_digest = '', part_digest = '', done_steps = '[]', available_digest = ''",
        ),
      ),
    namespaces: () =>
      (sql.prepare('SELECT name FROM cluster_namespace ORDER BY name').all() as { name: string }[]).map(
        ({ name }) => name,
      ),
    addNamespace: (name) =>
      transaction(() => void sql.prepare('INSERT OR IGNORE INTO cluster_namespace VALUES (?)').run(name)),
    removeNamespace: (name) =>
      transaction(() => void sql.prepare('DELETE FROM cluster_namespace WHERE name = ?').run(name)),
    clear: () => sql.exec('DELETE FROM cluster_pack; DELETE FROM cluster_namespace'),
  }
}

const recordOf = (row: Row): PackRecord => ({
  id: row.id,
  appliedDigest: row.applied_digest,
  partDigest: row.part_digest,
  availableDigest: row.available_digest,
  startedAt: row.started_at,
  endedAt: row.ended_at,
  doneSteps: JSON.parse(row.done_steps) as readonly string[],
  inventory: JSON.parse(row.inventory) as readonly InventoryEntry[],
  charts: JSON.parse(row.charts) as readonly string[],
  releases: JSON.parse(row.releases) as readonly InventoryEntry[],
})
