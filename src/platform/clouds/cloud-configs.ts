import { uuidAt } from '../../base/uid.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { refusedField } from '../../errors/refused-field.ts'
import { createSqlList, type SqlCondition, type SqlList } from '../../lists/sql-list.ts'
import type { Database } from '../../store/database.ts'
import type { Reader } from '../../store/reader.ts'
import type { Clock } from '../../system/clock.ts'
import { platformErrors } from '../codes.ts'
import type { KeptPools, SeenPool } from '../machines/kept-pools.ts'
import type { MachineProvider } from '../machines/provider.ts'
import type { CloudPool } from '../openstack/create-openstack.ts'
import type { RequireProject } from '../projects/projects.ts'
import type { VendorCloudConfig, VendorCloudConfigEntity } from '../schemas/cloud-configs.ts'
import type { CloudAccounts } from './cloud-accounts.ts'
import { cloudConfigList, toVendorCloudConfig } from './cloud-config-list.ts'
import {
  configColumns,
  toConfigRecord,
  type CloudConfigRecord,
  type CloudConfigStore,
} from './cloud-config-store.ts'
import { nameTaken } from '../taken-names.ts'

export interface CloudConfigsOptions {
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
  /** Names of what keeps a project from being deleted. */
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
          ...{ uid, projectUid, name, labels, annotations, createdAt: now },
          ...{ accountUid: cloudAccountRef.uid, pools: machinePoolConfig },
        })
      })
      return uid
    },
    list: createSqlList({
      ...{ resource: cloudConfigList, table: 'cloud_config', columns: configColumns },
      ...{ count: store.counts.all, sql: database.sql, read },
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
