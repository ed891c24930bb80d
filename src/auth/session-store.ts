import type { HostRole } from '../base/role.ts'
import { createColumns } from '../store/columns.ts'
import type { Database } from '../store/database.ts'

/** A stored session. Times are milliseconds since 1970. */
export interface SessionRecord {
  readonly uid: string
  readonly userName: string
  readonly role: HostRole
  /** Whether the local files or only a directory had the account, and made it admin, at the login or last renewal. */
  readonly accountSource: 'local' | 'directory'
  readonly roleSource: 'local' | 'directory'
  /** Address of the login. */
  readonly address: string
  readonly createdAt: number
  /** Time of the last renewal, or of the login. */
  readonly renewedAt: number
  readonly expiresAt: number
  /** Mark of the account at login; see `Account`. */
  readonly accountMark: string
  /** SHA-256 of the current refresh token. */
  readonly refreshHash: string
  /** SHA-256 of the previous one. */
  readonly previousHash: string | null
  /** Number of renewals. */
  readonly generation: number
}

/** Sessions on disk. */
export interface SessionStore {
  list(): SessionRecord[]
  /** A kill does not lose it. A power cut does, until the next sync, which comes with the audit record of the request. */
  put(record: SessionRecord): void
  /** On the disk when it returns. */
  remove(uids: readonly string[]): void
}

const columns = createColumns<keyof SessionRecord>({
  uid: 'uid',
  userName: 'user_name',
  role: 'role',
  accountSource: 'account_source',
  roleSource: 'role_source',
  address: 'address',
  createdAt: 'created_at',
  renewedAt: 'renewed_at',
  expiresAt: 'expires_at',
  accountMark: 'account_mark',
  refreshHash: 'refresh_hash',
  previousHash: 'previous_hash',
  generation: 'generation',
})

export function createSessionStore(database: Database): SessionStore {
  const list = database.sql.prepare(`SELECT ${columns.selected()} FROM session`)
  const put = database.sql.prepare(`INSERT OR REPLACE INTO session ${columns.inserted}`)
  const remove = database.sql.prepare('DELETE FROM session WHERE uid = ?')
  return {
    list: () => list.all() as unknown as SessionRecord[],
    put: (record) => database.transactionBeforeNext(() => void put.run(...columns.valuesOf(record))),
    remove: (uids) => database.transaction(() => uids.forEach((uid) => remove.run(uid))),
  }
}
