import type { Database } from '../../store/database.ts'

type Texts = Readonly<Record<string, string>>

/** A key as it is stored. Times are milliseconds since 1970; 0 is never. */
export interface KeyRecord {
  readonly uid: string
  readonly name: string
  readonly userUid: string
  /** SHA-256, hex. */
  readonly hash: string
  /** Its first characters. */
  readonly shown: string
  readonly labels: Texts
  readonly annotations: Texts
  readonly expiresAt: number
  readonly isActive: boolean
  readonly lastUsedAt: number
  readonly createdAt: number
  readonly modifiedAt: number
}

/** The API keys in the database. */
export interface KeyStore {
  all(): readonly KeyRecord[]
  find(uid: string): KeyRecord | undefined
  findByHash(hash: string): KeyRecord | undefined
  hasName(name: string): boolean
  /** Creates a key, or replaces all that may change. */
  put(key: KeyRecord): void
  noteUse(uid: string, now: number): void
  remove(uid: string): void
}

interface Row {
  readonly uid: string
  readonly name: string
  readonly user_uid: string
  readonly hash: string
  readonly shown: string
  readonly labels: string
  readonly annotations: string
  readonly expires_at: number
  readonly is_active: number
  readonly last_used_at: number
  readonly created_at: number
  readonly modified_at: number
}

export function createKeyStore({ sql }: Database): KeyStore {
  const list = sql.prepare('SELECT * FROM api_key ORDER BY uid')
  const byUid = sql.prepare('SELECT * FROM api_key WHERE uid = ?')
  const byHash = sql.prepare('SELECT * FROM api_key WHERE hash = ?')
  const byName = sql.prepare('SELECT 1 FROM api_key WHERE name_key = ?')
  const upsert = sql.prepare(
    `INSERT INTO api_key (uid, name, name_key, user_uid, hash, shown, labels, annotations, expires_at, is_active, last_used_at,
      created_at, modified_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)
    ON CONFLICT (uid) DO UPDATE SET labels = excluded.labels, annotations = excluded.annotations,
      expires_at = excluded.expires_at, is_active = excluded.is_active, modified_at = excluded.modified_at`,
  )
  const noteUse = sql.prepare('UPDATE api_key SET last_used_at = ? WHERE uid = ?')
  const remove = sql.prepare('DELETE FROM api_key WHERE uid = ?')
  const one = (row: unknown) => (row === undefined ? undefined : toRecord(row as Row))
  return {
    all: () => list.all().map((row) => toRecord(row as unknown as Row)),
    find: (uid) => one(byUid.get(uid)),
    findByHash: (hash) => one(byHash.get(hash)),
    hasName: (name) => byName.get(name.toLowerCase()) !== undefined,
    put(key) {
      upsert.run(
        ...[key.uid, key.name, key.name.toLowerCase(), key.userUid, key.hash, key.shown],
        ...[JSON.stringify(key.labels), JSON.stringify(key.annotations), key.expiresAt],
        ...[Number(key.isActive), key.createdAt, key.modifiedAt],
      )
    },
    noteUse: (uid, now) => void noteUse.run(now, uid),
    remove: (uid) => void remove.run(uid),
  }
}

const toRecord = (row: Row): KeyRecord => ({
  uid: row.uid,
  name: row.name,
  userUid: row.user_uid,
  hash: row.hash,
  shown: row.shown,
  labels: JSON.parse(row.labels) as Texts,
  annotations: JSON.parse(row.annotations) as Texts,
  expiresAt: row.expires_at,
  isActive: row.is_active === 1,
  lastUsedAt: row.last_used_at,
  createdAt: row.created_at,
  modifiedAt: row.modified_at,
})
