import type { Database } from '../../store/database.ts'
import { createScopeCounts, type ScopeCounts } from '../scope-counts.ts'
import { createFindTaken, type FindTaken, labelFilters, nameTaken } from '../names.ts'
import { masked } from '../../base/mask.ts'
import { formatTime } from '../../base/time.ts'
import type { ListResource } from '../../lists/resource.ts'
import { textColumn, type SqlField } from '../../lists/sql.ts'
import { VendorAccount, type VendorAccountCredentials, type VendorAccountEntity } from './schemas.ts'
import { uuidAt } from '../../base/uid.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { createSqlList, type SqlCondition, type SqlList } from '../../lists/sql-list.ts'
import type { Seal } from '../../secrets/seal.ts'
import type { Reader } from '../../store/reader.ts'
import type { Clock } from '../../system/clock.ts'
import { platformErrors } from '../codes.ts'
import type { MachineProvider } from './machines.ts'
import type { RequireProject } from '../projects/projects.ts'

type Texts = Readonly<Record<string, string>>

/** An account of a cloud as it is stored. Times are milliseconds since 1970. */
interface CloudAccountRecord {
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
interface CloudAccountStore {
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

/** An account as lists show it. */
type CloudAccountHead = Omit<CloudAccountRecord, 'secretKey'>

/** The columns of `CloudAccountHead`. */
const accountColumns = 'uid, project_uid, name, labels, annotations, secret_id, created_at'

/** A row of `accountColumns`. */
const toAccountHead = (row: Readonly<Record<string, unknown>>): CloudAccountHead => ({
  uid: String(row.uid),
  projectUid: String(row.project_uid),
  name: String(row.name),
  labels: JSON.parse(String(row.labels)) as Texts,
  annotations: JSON.parse(String(row.annotations)) as Texts,
  secretId: String(row.secret_id),
  createdAt: Number(row.created_at),
})

/** Queryable fields of the list of cloud accounts. */
export const cloudAccountList: ListResource<SqlField> = {
  name: 'cloud accounts',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': textColumn('uid'),
    'metadata.name': textColumn('name'),
    'metadata.creationTimestamp': { type: 'time', column: 'created_at' },
    'spec.secretId': textColumn('secret_id'),
  },
  families: labelFilters,
  defaultOrder: [{ path: 'metadata.creationTimestamp', direction: -1 }],
  item: VendorAccount,
}

/** A cloud account in the API. Pure. */
export const toVendorAccount = (account: CloudAccountHead): VendorAccount => ({
  apiVersion: 'v1',
  kind: 'VendorAccount',
  metadata: {
    annotations: account.annotations,
    labels: account.labels,
    name: account.name,
    uid: account.uid,
    creationTimestamp: formatTime(account.createdAt),
    lastModifiedTimestamp: formatTime(account.createdAt),
  },
  spec: { secretId: account.secretId, secretKey: masked },
  status: {},
})

interface CloudAccountsOptions {
  readonly store: CloudAccountStore
  readonly database: Pick<Database, 'sql' | 'transaction'>
  readonly read: Reader['read']
  readonly requireProject: RequireProject
  readonly seal: Seal
  /** @throws AppError CloudNotConfigured */
  readonly provider: () => Pick<MachineProvider<VendorAccountCredentials, never>, 'validate'>
  /** Names of the cloud configurations that use an account. */
  readonly usesOf: (accountUid: string) => readonly string[]
  /** Ends the requests to the cloud. */
  readonly stopping: AbortSignal
  readonly clock: Pick<Clock, 'now'>
}

/** The accounts of the cloud that the platform keeps. */
export interface CloudAccounts {
  /**
   * Asks the cloud whether it accepts credentials.
   * @throws AppError CloudNotConfigured, CloudCredentialsRefused, CloudUnavailable also without an answer in five seconds
   */
  validate(credentials: VendorAccountCredentials, signal: AbortSignal): Promise<void>
  /** Keeps an account whose credentials the cloud accepts. @throws AppError as `validate`; CloudAccountExists */
  create(entity: VendorAccountEntity, projectUid: string, signal: AbortSignal): Promise<string>
  readonly list: SqlList<VendorAccount>
  inScope(projectUid: string): SqlCondition
  /** @throws AppError NotFound for an account of another scope too */
  get(uid: string, projectUid: string): CloudAccountRecord
  /** The account with this uid, of the project or of the tenant. */
  findUsable(uid: string, projectUid: string): CloudAccountHead | undefined
  /** @throws AppError NotFound where the account is not there any more, SecretReplaced */
  credentialsOf(uid: string): VendorAccountCredentials
  /** @throws AppError NotFound, CloudAccountInUse */
  remove(uid: string, projectUid: string): void
  /** Names of resources that block the deletion of a project. */
  usesOfProject(projectUid: string): readonly string[]
}

const answerMs = 5_000

export function createCloudAccounts(options: CloudAccountsOptions): CloudAccounts {
  const { store, database, read, requireProject, seal, provider, usesOf, stopping, clock } = options

  const notFound = () =>
    new AppError(generalErrors.NotFound, 'there is no cloud account with this uid in this scope')

  function get(uid: string, projectUid: string): CloudAccountRecord {
    const account = store.find(uid)
    if (account?.projectUid !== projectUid) throw notFound()
    return account
  }

  function requireNew(projectUid: string, name: string): void {
    store.counts.requireRoom(projectUid)
    const taken = store.findTaken(projectUid, name)
    if (taken !== undefined)
      throw nameTaken(platformErrors.CloudAccountExists, 'cloud account', { name, taken }, 'in this scope')
  }

  async function validate(credentials: VendorAccountCredentials, signal: AbortSignal): Promise<void> {
    try {
      const ends = AbortSignal.any([signal, stopping, AbortSignal.timeout(answerMs)])
      await provider().validate(credentials, ends)
    } finally {
      // The end of the session is the reason, not an error that followed from it.
      signal.throwIfAborted()
    }
  }

  return {
    validate,
    get,
    async create({ metadata, spec }, projectUid, signal) {
      const { name, labels = {}, annotations = {} } = metadata
      requireNew(projectUid, name)
      await validate(spec, signal)
      const now = clock.now()
      const account: CloudAccountRecord = {
        uid: uuidAt(now),
        projectUid,
        name,
        labels,
        annotations,
        secretId: spec.secretId,
        secretKey: seal.seal(spec.secretKey),
        createdAt: now,
      }
      database.transaction(() => {
        requireProject(projectUid)
        requireNew(projectUid, name)
        store.add(account)
      })
      return account.uid
    },
    list: createSqlList({
      resource: cloudAccountList,
      table: 'cloud_account',
      columns: accountColumns,
      count: store.counts.all,
      sql: database.sql,
      read,
      toItem: (row) => toVendorAccount(toAccountHead(row)),
    }),
    inScope: store.counts.condition,
    findUsable(uid, projectUid) {
      const account = store.find(uid)
      return account && ['', projectUid].includes(account.projectUid) ? account : undefined
    },
    credentialsOf(uid) {
      const account = store.find(uid)
      if (!account) throw notFound()
      const secretKey = seal.open(account.secretKey)
      if (secretKey === undefined)
        throw new AppError(
          platformErrors.SecretReplaced,
          `the secret of the cloud account ${account.name} cannot be read any more`,
        )
      return { secretId: account.secretId, secretKey }
    },
    remove(uid, projectUid) {
      database.transaction(() => {
        const { name } = get(uid, projectUid)
        const uses = usesOf(uid)
        if (uses.length > 0)
          throw new AppError(
            platformErrors.CloudAccountInUse,
            `${name} is used by ${uses.join(', ')}; delete them first`,
          )
        store.remove(uid)
      })
    },
    usesOfProject: (projectUid) => store.counts.usesOf(projectUid, 'cloud account'),
  }
}
