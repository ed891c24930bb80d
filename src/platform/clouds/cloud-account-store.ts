import type { Database } from '../../store/database.ts'
import { createScopeCounts, type ScopeCounts } from '../scope-counts.ts'
import { createFindTaken, type FindTaken } from '../taken-names.ts'

type Texts = Readonly<Record<string, string>>

/** An account of a cloud as it is stored. Times are milliseconds since 1970. */
export interface CloudAccountRecord {
  readonly uid: string
  /** Empty for the tenant. */
  readonly projectUid: string
  readonly name: string
  readonly labels: Texts
  readonly annotations: Texts
  readonly secretId: string
  /** Sealed. */
  readonly secretKey: Uint8Array
  readonly createdAt: number
}

/** The accounts in the database. */
export interface CloudAccountStore {
  find(uid: string): CloudAccountRecord | undefined
  readonly findTaken: FindTaken
  add(account: CloudAccountRecord): void
  remove(uid: string): void
  readonly counts: ScopeCounts
}

export function createCloudAccountStore(database: Database): CloudAccountStore {
  const { sql } = database
  const byUid = sql.prepare('SELECT * FROM cloud_account WHERE uid = ?')
  const insert = sql.prepare(
    `INSERT INTO cloud_account (uid, project_uid, name, labels, annotations, secret_id, secret_key, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const remove = sql.prepare('DELETE FROM cloud_account WHERE uid = ?')
  return {
    find(uid) {
      const row = byUid.get(uid)
      return row && { ...toAccountHead(row), secretKey: row.secret_key as Uint8Array }
    },
    findTaken: createFindTaken(database, 'cloud_account'),
    add(account) {
      insert.run(
        ...[account.uid, account.projectUid, account.name, JSON.stringify(account.labels)],
        ...[JSON.stringify(account.annotations), account.secretId, account.secretKey, account.createdAt],
      )
    },
    remove: (uid) => void remove.run(uid),
    counts: createScopeCounts(database, 'cloud_account'),
  }
}

/** What lists show of an account. */
export type CloudAccountHead = Omit<CloudAccountRecord, 'secretKey'>

/** The columns of `CloudAccountHead`. */
export const accountColumns = 'uid, project_uid, name, labels, annotations, secret_id, created_at'

/** A row of `accountColumns`. */
export const toAccountHead = (row: Readonly<Record<string, unknown>>): CloudAccountHead => ({
  uid: String(row.uid),
  projectUid: String(row.project_uid),
  name: String(row.name),
  labels: JSON.parse(String(row.labels)) as Texts,
  annotations: JSON.parse(String(row.annotations)) as Texts,
  secretId: String(row.secret_id),
  createdAt: Number(row.created_at),
})
