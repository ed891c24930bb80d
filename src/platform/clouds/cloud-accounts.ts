import { uuidAt } from '../../base/uid.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { createSqlList, type SqlCondition, type SqlList } from '../../lists/sql-list.ts'
import type { Seal } from '../../secrets/seal.ts'
import type { Database } from '../../store/database.ts'
import type { Reader } from '../../store/reader.ts'
import type { Clock } from '../../system/clock.ts'
import { platformErrors } from '../codes.ts'
import type { MachineProvider } from '../machines/provider.ts'
import type { RequireProject } from '../projects/projects.ts'
import type {
  VendorAccount,
  VendorAccountCredentials,
  VendorAccountEntity,
} from '../schemas/cloud-accounts.ts'
import { cloudAccountList, toVendorAccount } from './cloud-account-list.ts'
import {
  accountColumns,
  toAccountHead,
  type CloudAccountHead,
  type CloudAccountRecord,
  type CloudAccountStore,
} from './cloud-account-store.ts'
import { nameTaken } from '../taken-names.ts'

export interface CloudAccountsOptions {
  readonly store: CloudAccountStore
  readonly database: Pick<Database, 'sql' | 'transaction'>
  readonly read: Reader['read']
  readonly requireProject: RequireProject
  readonly seal: Seal
  /** @throws AppError CloudNotConfigured */
  readonly provider: () => Pick<MachineProvider<VendorAccountCredentials, never>, 'validate'>
  /** Names of the cloud configurations that use an account. */
  readonly usesOf: (accountUid: string) => readonly string[]
  /** Ends what the cloud is asked. */
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
  /** Names of what keeps a project from being deleted. */
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
        ...{ uid: uuidAt(now), projectUid, name, labels, annotations, secretId: spec.secretId },
        ...{ secretKey: seal.seal(spec.secretKey), createdAt: now },
      }
      database.transaction(() => {
        requireProject(projectUid)
        requireNew(projectUid, name)
        store.add(account)
      })
      return account.uid
    },
    list: createSqlList({
      ...{ resource: cloudAccountList, table: 'cloud_account', columns: accountColumns },
      ...{ count: store.counts.all, sql: database.sql, read },
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
