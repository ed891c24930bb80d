import type { Database } from '../../store/database.ts'
import { createSecretStore, type SecretRecord, type SecretStore } from '../secret-store.ts'

/** A registration token as it is stored. */
export interface TokenRecord extends SecretRecord {
  /** Where its hosts are registered; empty is the tenant. */
  readonly projectUid: string
  /** 0 is any number. */
  readonly maximumHosts: number
  /** How many were registered with it. */
  readonly hosts: number
}

/** The registration tokens in the database. */
export interface TokenStore extends SecretStore<TokenRecord> {
  countHost(uid: string): void
}

export function createTokenStore(database: Database): TokenStore {
  const count = database.sql.prepare('UPDATE registration_token SET hosts = hosts + 1 WHERE uid = ?')
  const store = createSecretStore<'projectUid' | 'maximumHosts' | 'hosts', TokenRecord>(database, {
    table: 'registration_token',
    own: { projectUid: 'project_uid', maximumHosts: 'maximum_hosts', hosts: 'hosts' },
    changing: ['projectUid', 'maximumHosts'],
  })
  return { ...store, countHost: (uid) => void count.run(uid) }
}
