import type { Database } from '../../store/database.ts'
import { createSecretStore, type SecretRecord, type SecretStore } from '../secret-store.ts'

/** A key as it is stored. */
export interface KeyRecord extends SecretRecord {
  readonly userUid: string
  /** 0 is never. */
  readonly lastUsedAt: number
}

/** The API keys in the database. */
export interface KeyStore extends SecretStore<KeyRecord> {
  noteUse(uid: string, now: number): void
}

export function createKeyStore(database: Database): KeyStore {
  const noteUse = database.sql.prepare('UPDATE api_key SET last_used_at = ? WHERE uid = ?')
  const store = createSecretStore<'userUid' | 'lastUsedAt', KeyRecord>(database, {
    table: 'api_key',
    own: { userUid: 'user_uid', lastUsedAt: 'last_used_at' },
    changing: [],
  })
  return { ...store, noteUse: (uid, now) => void noteUse.run(now, uid) }
}
