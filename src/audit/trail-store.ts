import type { SQLOutputValue } from 'node:sqlite'
import type { Database } from '../store/database.ts'
import { emptyHead, type AuditEntry, type AuditHead, type AuditRecord } from './record.ts'

/** What retention has taken away: every record up to `removedTo`. The record `seq` of the chain says so itself. */
export interface Checkpoint {
  readonly seq: number
  readonly removedTo: number
}

/** An intent to change something that has become no record yet. */
export interface Intent {
  readonly uid: string
  readonly entry: AuditEntry
}

/** The trail on disk. Whoever writes does it in a transaction of his own. */
export interface TrailStore {
  insert(record: AuditRecord): void
  head(): AuditHead
  /** Number of the oldest record; 1 when there is none. */
  first(): number
  read(seq: number): AuditRecord | undefined
  /** Records from a number on, the oldest first. */
  slice(from: number, limit: number): AuditRecord[]
  /** Bytes that all records ever took up to the end of this one. */
  endOffset(seq: number): number
  checkpoint(): Checkpoint | undefined
  putCheckpoint(checkpoint: Checkpoint): void
  /** Removes so many of the oldest records up to a checkpoint. */
  remove(limit: number): number
  putIntent(intent: Intent): void
  removeIntent(uid: string): void
  intents(): Intent[]
}

const columns = {
  seq: 'seq',
  uid: 'uid',
  at: 'at',
  actorType: 'actor_type',
  actor: 'actor',
  role: 'role',
  address: 'address',
  action: 'action',
  kind: 'kind',
  resourceName: 'resource_name',
  resourceUid: 'resource_uid',
  message: 'message',
  outcome: 'outcome',
  status: 'status',
  requestId: 'request_id',
  previousHash: 'previous_hash',
  hash: 'hash',
} as const satisfies Record<keyof AuditRecord, string>

const fields = Object.keys(columns) as (keyof AuditRecord)[]

/** What stands behind SELECT for rows that have these fields of a record. */
export const columnsOf = (isWanted: (field: keyof AuditRecord) => boolean): string =>
  fields
    .filter(isWanted)
    .map((field) => `${columns[field]} AS ${field}`)
    .join(', ')

const recordColumns = columnsOf(() => true)

// Hashes, rows of the indexes and SQLite's own; measured with the records of a host.
const overheadBytes = 340

const bytesOf = (record: AuditRecord) =>
  overheadBytes +
  Buffer.byteLength(record.actor + record.resourceName + record.resourceUid + record.message + record.address)

export function createTrailStore({ sql }: Database): TrailStore {
  const insert = sql.prepare(
    `INSERT INTO audit (${Object.values(columns).join(', ')}, end_offset) VALUES (${fields.map(() => '?').join(', ')}, ?)`,
  )
  const head = sql.prepare('SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1')
  const first = sql.prepare('SELECT min(seq) AS seq FROM audit')
  const read = sql.prepare(`SELECT ${recordColumns} FROM audit WHERE seq = ?`)
  const slice = sql.prepare(`SELECT ${recordColumns} FROM audit WHERE seq >= ? ORDER BY seq LIMIT ?`)
  const endOffset = sql.prepare('SELECT end_offset AS bytes FROM audit WHERE seq = ?')
  const checkpoint = sql.prepare('SELECT seq, removed_to AS removedTo FROM audit_checkpoint')
  const putCheckpoint = sql.prepare(
    'INSERT OR REPLACE INTO audit_checkpoint (one, seq, removed_to) VALUES (1, ?, ?)',
  )
  const remove = sql.prepare(
    'DELETE FROM audit WHERE seq IN (SELECT seq FROM audit WHERE seq <= ? ORDER BY seq LIMIT ?)',
  )
  const putIntent = sql.prepare('INSERT INTO audit_intent (uid, entry) VALUES (?, ?)')
  const removeIntent = sql.prepare('DELETE FROM audit_intent WHERE uid = ?')
  const intents = sql.prepare('SELECT uid, entry FROM audit_intent ORDER BY rowid')

  const offsetOf = (seq: number) => (endOffset.get(seq) as { bytes: number } | undefined)?.bytes ?? 0

  return {
    insert(record) {
      const values = fields.map((field) => record[field])
      insert.run(...(values as SQLOutputValue[]), offsetOf(record.seq - 1) + bytesOf(record))
    },
    head: () => (head.get() as AuditHead | undefined) ?? emptyHead,
    first: () => (first.get() as { seq: number | null }).seq ?? 1,
    read: (seq) => read.get(seq) as AuditRecord | undefined,
    slice: (from, limit) => slice.all(from, limit) as unknown as AuditRecord[],
    endOffset: offsetOf,
    checkpoint: () => checkpoint.get() as unknown as Checkpoint | undefined,
    putCheckpoint: ({ seq, removedTo }) => void putCheckpoint.run(seq, removedTo),
    remove: (limit) => {
      const { removedTo = 0 } = (checkpoint.get() ?? {}) as Partial<Checkpoint>
      return Number(remove.run(removedTo, limit).changes)
    },
    putIntent: ({ uid, entry }) => void putIntent.run(uid, JSON.stringify(entry)),
    removeIntent: (uid) => void removeIntent.run(uid),
    intents: () =>
      intents.all().map(({ uid, entry }) => ({
        uid: String(uid),
        entry: JSON.parse(String(entry)) as AuditEntry,
      })),
  }
}
