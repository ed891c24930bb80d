import type { Database } from '../../store/database.ts'

type Texts = Readonly<Record<string, string>>

/** A registration token as it is stored. Times are milliseconds since 1970. */
export interface TokenRecord {
  readonly uid: string
  readonly name: string
  /** Where its hosts are registered; empty is the tenant. */
  readonly projectUid: string
  /** SHA-256, hex. */
  readonly hash: string
  /** Its first characters. */
  readonly shown: string
  readonly labels: Texts
  readonly annotations: Texts
  readonly expiresAt: number
  readonly isActive: boolean
  /** 0 is any number. */
  readonly maximumHosts: number
  /** How many were registered with it. */
  readonly hosts: number
  readonly createdAt: number
  readonly modifiedAt: number
}

/** The registration tokens in the database. */
export interface TokenStore {
  all(): readonly TokenRecord[]
  find(uid: string): TokenRecord | undefined
  findByHash(hash: string): TokenRecord | undefined
  hasName(name: string): boolean
  /** Creates a token, or replaces all that may change. */
  put(token: TokenRecord): void
  countHost(uid: string): void
  remove(uid: string): void
}

interface Row {
  readonly uid: string
  readonly name: string
  readonly project_uid: string
  readonly hash: string
  readonly shown: string
  readonly labels: string
  readonly annotations: string
  readonly expires_at: number
  readonly is_active: number
  readonly maximum_hosts: number
  readonly hosts: number
  readonly created_at: number
  readonly modified_at: number
}

export function createTokenStore({ sql }: Database): TokenStore {
  const list = sql.prepare('SELECT * FROM registration_token ORDER BY uid')
  const byUid = sql.prepare('SELECT * FROM registration_token WHERE uid = ?')
  const byHash = sql.prepare('SELECT * FROM registration_token WHERE hash = ?')
  const byName = sql.prepare('SELECT 1 FROM registration_token WHERE name_key = ?')
  const upsert = sql.prepare(
    `INSERT INTO registration_token (uid, name, name_key, project_uid, hash, shown, labels, annotations, expires_at, is_active,
      maximum_hosts, hosts, created_at, modified_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)
    ON CONFLICT (uid) DO UPDATE SET project_uid = excluded.project_uid, labels = excluded.labels, annotations = excluded.annotations,
      expires_at = excluded.expires_at, is_active = excluded.is_active, maximum_hosts = excluded.maximum_hosts,
      modified_at = excluded.modified_at`,
  )
  const count = sql.prepare('UPDATE registration_token SET hosts = hosts + 1 WHERE uid = ?')
  const remove = sql.prepare('DELETE FROM registration_token WHERE uid = ?')
  const one = (row: unknown) => (row === undefined ? undefined : toRecord(row as Row))
  return {
    all: () => list.all().map((row) => toRecord(row as unknown as Row)),
    find: (uid) => one(byUid.get(uid)),
    findByHash: (hash) => one(byHash.get(hash)),
    hasName: (name) => byName.get(name.toLowerCase()) !== undefined,
    put(token) {
      upsert.run(
        ...[token.uid, token.name, token.name.toLowerCase(), token.projectUid, token.hash, token.shown],
        ...[JSON.stringify(token.labels), JSON.stringify(token.annotations), token.expiresAt],
        ...[Number(token.isActive), token.maximumHosts, token.createdAt, token.modifiedAt],
      )
    },
    countHost: (uid) => void count.run(uid),
    remove: (uid) => void remove.run(uid),
  }
}

const toRecord = (row: Row): TokenRecord => ({
  uid: row.uid,
  name: row.name,
  projectUid: row.project_uid,
  hash: row.hash,
  shown: row.shown,
  labels: JSON.parse(row.labels) as Texts,
  annotations: JSON.parse(row.annotations) as Texts,
  expiresAt: row.expires_at,
  isActive: row.is_active === 1,
  maximumHosts: row.maximum_hosts,
  hosts: row.hosts,
  createdAt: row.created_at,
  modifiedAt: row.modified_at,
})
