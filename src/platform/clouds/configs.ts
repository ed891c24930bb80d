import type { Database } from '../../store/database.ts'
import { type VendorMachinePool, VendorCloudConfig, type VendorCloudConfigEntity } from './schemas.ts'
import { createScopeCounts, type ScopeCounts } from '../scope-counts.ts'
import { createFindTaken, type FindTaken, labelFilters, nameTaken } from '../names.ts'
import { formatTime } from '../../base/time.ts'
import type { ListResource } from '../../lists/resource.ts'
import { textColumn, type SqlField } from '../../lists/sql.ts'
import { uuidAt } from '../../base/uid.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { refusedField } from '../../errors/refused-field.ts'
import { createSqlList, type SqlCondition, type SqlList } from '../../lists/sql-list.ts'
import type { Reader } from '../../store/reader.ts'
import type { Clock } from '../../system/clock.ts'
import { platformErrors } from '../codes.ts'
import type { KeptPools, SeenPool } from './kept-pools.ts'
import type { MachineProvider } from './machines.ts'
import type { CloudPool } from './openstack/openstack.ts'
import type { RequireProject } from '../projects/projects.ts'
import type { CloudAccounts } from './accounts.ts'

type Texts = Readonly<Record<string, string>>

/** A cloud configuration as it is stored. Times are milliseconds since 1970. */
interface CloudConfigRecord {
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
interface CloudConfigStore {
  find(uid: string): CloudConfigRecord | undefined
  readonly findTaken: FindTaken
  /** Names of the configurations with an account, of all scopes. */
  namesWith(accountUid: string): readonly string[]
  add(config: CloudConfigRecord): void
  remove(uid: string): void
  readonly counts: ScopeCounts
}

/** The columns of `CloudConfigRecord`. */
const configColumns = 'uid, project_uid, name, labels, annotations, account_uid, pools, created_at'

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
const toConfigRecord = (row: Readonly<Record<string, unknown>>): CloudConfigRecord => ({
  uid: String(row.uid),
  projectUid: String(row.project_uid),
  name: String(row.name),
  labels: JSON.parse(String(row.labels)) as Texts,
  annotations: JSON.parse(String(row.annotations)) as Texts,
  accountUid: String(row.account_uid),
  pools: JSON.parse(String(row.pools)) as VendorMachinePool[],
  createdAt: Number(row.created_at),
})

/** Queryable fields of the list of cloud configurations. */
export const cloudConfigList: ListResource<SqlField> = {
  name: 'cloud configurations',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': textColumn('uid'),
    'metadata.name': textColumn('name'),
    'metadata.creationTimestamp': { type: 'time', column: 'created_at' },
    'spec.cloudAccountRef.uid': textColumn('account_uid'),
  },
  families: labelFilters,
  defaultOrder: [{ path: 'metadata.creationTimestamp', direction: -1 }],
  item: VendorCloudConfig,
}

/** A cloud configuration in the API. Pure. */
const toVendorCloudConfig = (config: CloudConfigRecord, accountName: string): VendorCloudConfig => ({
  apiVersion: 'v1',
  kind: 'VendorCloudConfig',
  metadata: {
    annotations: config.annotations,
    labels: config.labels,
    name: config.name,
    uid: config.uid,
    creationTimestamp: formatTime(config.createdAt),
    lastModifiedTimestamp: formatTime(config.createdAt),
  },
  spec: {
    cloudAccountRef: { kind: 'VendorAccount', name: accountName, uid: config.accountUid },
    machinePoolConfig: [...config.pools],
  },
  status: {},
})

interface CloudConfigsOptions {
  readonly store: CloudConfigStore
  readonly database: Pick<Database, 'sql' | 'transaction'>
  readonly read: Reader['read']
  readonly requireProject: RequireProject
  readonly accounts: Pick<CloudAccounts, 'findUsable' | 'credentialsOf'>
  readonly pools: KeptPools
  /** @throws AppError CloudNotConfigured */
  readonly provider: () => Pick<MachineProvider<never, CloudPool>, 'machines'>
  readonly clock: Pick<Clock, 'now'>
}

/** Cloud configurations: an account, and pools of servers that it sees. */
export interface CloudConfigs {
  /** @throws AppError CloudConfigExists, BadRequest */
  create(entity: VendorCloudConfigEntity, projectUid: string): string
  readonly list: SqlList<VendorCloudConfig>
  inScope(projectUid: string): SqlCondition
  /** @throws AppError NotFound for a configuration of another scope too */
  get(uid: string, projectUid: string): CloudConfigRecord
  show(config: CloudConfigRecord): VendorCloudConfig
  /** The machines of a pool. @throws AppError NotFound, CloudNotConfigured, SecretReplaced, CloudCredentialsRefused, CloudUnavailable */
  machines(config: CloudConfigRecord, poolName: string): Promise<SeenPool>
  /** @throws AppError NotFound */
  remove(uid: string, projectUid: string): void
  /** Names of resources that block the deletion of a project. */
  usesOfProject(projectUid: string): readonly string[]
}

export function createCloudConfigs(options: CloudConfigsOptions): CloudConfigs {
  const { store, database, read, requireProject, accounts, pools, provider, clock } = options

  function get(uid: string, projectUid: string): CloudConfigRecord {
    const config = store.find(uid)
    if (config?.projectUid !== projectUid)
      throw new AppError(
        generalErrors.NotFound,
        'there is no cloud configuration with this uid in this scope',
      )
    return config
  }

  const show = (config: CloudConfigRecord) =>
    toVendorCloudConfig(config, accounts.findUsable(config.accountUid, config.projectUid)?.name ?? '')

  return {
    get,
    show,
    create({ metadata, spec }, projectUid) {
      const { name, labels = {}, annotations = {} } = metadata
      const { cloudAccountRef, machinePoolConfig } = spec
      for (const [index, { name: pool }] of machinePoolConfig.entries())
        if (machinePoolConfig.findIndex((each) => each.name === pool) < index)
          throw refusedField(`spec.machinePoolConfig[${index}].name`, 'is the name of another pool too')
      const now = clock.now()
      const uid = uuidAt(now)
      database.transaction(() => {
        requireProject(projectUid)
        if (!accounts.findUsable(cloudAccountRef.uid, projectUid))
          throw refusedField('spec.cloudAccountRef.uid', 'is no cloud account of this scope or of the tenant')
        const taken = store.findTaken(projectUid, name)
        if (taken !== undefined)
          throw nameTaken(
            platformErrors.CloudConfigExists,
            'cloud configuration',
            { name, taken },
            'in this scope',
          )
        store.counts.requireRoom(projectUid)
        store.add({
          uid,
          projectUid,
          name,
          labels,
          annotations,
          createdAt: now,
          accountUid: cloudAccountRef.uid,
          pools: machinePoolConfig,
        })
      })
      return uid
    },
    list: createSqlList({
      resource: cloudConfigList,
      table: 'cloud_config',
      columns: configColumns,
      count: store.counts.all,
      sql: database.sql,
      read,
      toItem: (row) => show(toConfigRecord(row)),
    }),
    inScope: store.counts.condition,
    async machines({ uid, accountUid, pools: known }, poolName) {
      const pool = known.find(({ name }) => name === poolName)
      if (!pool)
        throw new AppError(
          generalErrors.NotFound,
          `the cloud configuration has no machine pool with this name; it has ${known.map(({ name }) => name).join(', ')}`,
        )
      const { machines } = provider()
      const credentials = accounts.credentialsOf(accountUid)
      return pools.see(`${uid}/${poolName}`, (limits) => machines({ credentials, tags: pool.tags }, limits))
    },
    remove(uid, projectUid) {
      get(uid, projectUid)
      store.remove(uid)
    },
    usesOfProject: (projectUid) => store.counts.usesOf(projectUid, 'cloud configuration'),
  }
}
