import { createColumns } from '../store/columns.ts'
import type { Database } from '../store/database.ts'
import { emptyHead, type AuditAction, type AuditEntry, type AuditHead, type AuditRecord } from './record.ts'

/** The last removal by retention: every record up to `removedTo`. The record `seq` of the chain documents it. */
export interface Checkpoint {
  readonly seq: number
  readonly removedTo: number
}

/** An announced change whose record is not on the disk yet. */
export interface Intent {
  readonly uid: string
  readonly entry: AuditEntry
}

/** The trail on disk. The caller runs the writes in its transaction. */
export interface TrailStore {
  put(record: AuditRecord): void
  head(): AuditHead
  /** Number of the oldest record; 1 for an empty trail. */
  first(): number
  read(seq: number): AuditRecord | undefined
  /** Records from a number on, the oldest first. */
  slice(from: number, limit: number): AuditRecord[]
  /** Bytes used by the database, without its free pages. */
  usedBytes(): number
  find(uid: string): AuditRecord | undefined
  /** The newest record of this kind and action. */
  newest(kind: string, action: AuditAction): AuditRecord | undefined
  checkpoint(): Checkpoint | undefined
  putCheckpoint(checkpoint: Checkpoint): void
  /** Removes at most this many of the oldest records up to a checkpoint. */
  remove(limit: number): number
  putIntent(intent: Intent): void
  removeIntent(uid: string): void
  intents(): Intent[]
}

/** Columns of the table `audit`. */
export const auditColumns = createColumns<keyof AuditRecord>({
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
  actorUid: 'actor_uid',
  projectUid: 'project_uid',
  previousHash: 'previous_hash',
  hash: 'hash',
})

const recordColumns = auditColumns.selected()

export function createTrailStore({ sql }: Database): TrailStore {
  const insert = sql.prepare(`INSERT INTO audit ${auditColumns.inserted}`)
  const head = sql.prepare('SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1')
  const first = sql.prepare('SELECT min(seq) AS seq FROM audit')
  const read = sql.prepare(`SELECT ${recordColumns} FROM audit WHERE seq = ?`)
  const slice = sql.prepare(`SELECT ${recordColumns} FROM audit WHERE seq >= ? ORDER BY seq LIMIT ?`)
  const usedBytes = sql.prepare(
    'SELECT (page_count - freelist_count) * page_size AS bytes FROM pragma_page_count, pragma_freelist_count, pragma_page_size',
  )
  const find = sql.prepare(`SELECT ${recordColumns} FROM audit WHERE uid = ?`)
  // Uses this index, so that a search for a rare kind does not read every record.
  const newest = sql.prepare(
    `SELECT ${recordColumns} FROM audit INDEXED BY audit_kind WHERE kind = ? AND action = ? ORDER BY seq DESC LIMIT 1`,
  )
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

  return {
    put: (record) => void insert.run(...auditColumns.valuesOf(record)),
    head: () => (head.get() as AuditHead | undefined) ?? emptyHead,
    first: () => (first.get() as { seq: number | null }).seq ?? 1,
    read: (seq) => read.get(seq) as AuditRecord | undefined,
    slice: (from, limit) => slice.all(from, limit) as unknown as AuditRecord[],
    usedBytes: () => Number(usedBytes.get()?.bytes),
    find: (uid) => find.get(uid) as AuditRecord | undefined,
    newest: (kind, action) => newest.get(kind, action) as AuditRecord | undefined,
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
