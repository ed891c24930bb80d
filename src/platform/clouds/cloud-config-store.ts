import type { Database } from '../../store/database.ts'
import type { VendorMachinePool } from '../schemas/cloud-configs.ts'
import { createScopeCounts, type ScopeCounts } from '../scope-counts.ts'
import { createFindTaken, type FindTaken } from '../taken-names.ts'

type Texts = Readonly<Record<string, string>>

/** A cloud configuration as it is stored. Times are milliseconds since 1970. */
export interface CloudConfigRecord {
  readonly uid: string
  /** Empty for the tenant. */
  readonly projectUid: string
  readonly name: string
  readonly labels: Texts
  readonly annotations: Texts
  readonly accountUid: string
  readonly pools: readonly VendorMachinePool[]
  readonly createdAt: number
}

/** The cloud configurations in the database. */
export interface CloudConfigStore {
  find(uid: string): CloudConfigRecord | undefined
  readonly findTaken: FindTaken
  /** The names of those that use an account, of all scopes. */
  namesWith(accountUid: string): readonly string[]
  add(config: CloudConfigRecord): void
  remove(uid: string): void
  readonly counts: ScopeCounts
}

/** The columns of `CloudConfigRecord`. */
export const configColumns = 'uid, project_uid, name, labels, annotations, account_uid, pools, created_at'

export function createCloudConfigStore(database: Database): CloudConfigStore {
  const { sql } = database
  const byUid = sql.prepare(`SELECT ${configColumns} FROM cloud_config WHERE uid = ?`)
  const byAccount = sql.prepare('SELECT name FROM cloud_config WHERE account_uid = ? ORDER BY name')
  const insert = sql.prepare(`INSERT INTO cloud_config (${configColumns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`)
  const remove = sql.prepare('DELETE FROM cloud_config WHERE uid = ?')
  return {
    find(uid) {
      const row = byUid.get(uid)
      return row && toConfigRecord(row)
    },
    findTaken: createFindTaken(database, 'cloud_config'),
    namesWith: (accountUid) => byAccount.all(accountUid).map(({ name }) => String(name)),
    add(config) {
      insert.run(
        ...[config.uid, config.projectUid, config.name, JSON.stringify(config.labels)],
        ...[JSON.stringify(config.annotations), config.accountUid, JSON.stringify(config.pools)],
        config.createdAt,
      )
    },
    remove: (uid) => void remove.run(uid),
    counts: createScopeCounts(database, 'cloud_config'),
  }
}

/** A row of `configColumns`. */
export const toConfigRecord = (row: Readonly<Record<string, unknown>>): CloudConfigRecord => ({
  uid: String(row.uid),
  projectUid: String(row.project_uid),
  name: String(row.name),
  labels: JSON.parse(String(row.labels)) as Texts,
  annotations: JSON.parse(String(row.annotations)) as Texts,
  accountUid: String(row.account_uid),
  pools: JSON.parse(String(row.pools)) as VendorMachinePool[],
  createdAt: Number(row.created_at),
})
