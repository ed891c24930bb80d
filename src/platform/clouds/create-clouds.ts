import { AppError } from '../../errors/app-error.ts'
import type { Secrets } from '../../secrets/secrets.ts'
import type { Database } from '../../store/database.ts'
import type { Reader } from '../../store/reader.ts'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import { platformErrors } from '../codes.ts'
import type { CloudsSettings } from '../config.ts'
import { createKeptPools } from '../machines/kept-pools.ts'
import { createOpenStack } from '../openstack/create-openstack.ts'
import type { RequireProject } from '../projects/projects.ts'
import { sealedColumns, sealOf } from '../secret/sealed-columns.ts'
import { createCloudAccounts, type CloudAccounts } from './cloud-accounts.ts'
import { createCloudAccountStore } from './cloud-account-store.ts'
import { createCloudConfigs, type CloudConfigs } from './cloud-configs.ts'
import { createCloudConfigStore } from './cloud-config-store.ts'

export interface CloudPartsOptions {
  readonly settings: CloudsSettings
  readonly database: Database
  readonly read: Reader['read']
  readonly secrets: Secrets
  readonly requireProject: RequireProject
  /** Ends what the cloud is asked. */
  readonly stopping: AbortSignal
  readonly clock: Clock
  readonly log: Logger
}

/** Accounts of a cloud, and pools of its servers. */
export interface CloudParts {
  readonly accounts: CloudAccounts
  readonly configs: CloudConfigs
  /** Names of what keeps a project from being deleted. */
  usesOf(projectUid: string): readonly string[]
  stop(): void
}

/** @throws Error for a file of authorities that cannot be read */
export async function createCloudParts(options: CloudPartsOptions): Promise<CloudParts> {
  const { settings, database, read, secrets, requireProject, stopping, clock, log } = options
  const openStack = await createOpenStack(settings.vendor, clock)
  const provider = () => {
    if (openStack) return openStack
    throw new AppError(
      platformErrors.CloudNotConfigured,
      'this platform has no cloud; an administrator of its machine has to set clouds.vendor.authUrl',
    )
  }
  const store = createCloudConfigStore(database)
  const accounts = createCloudAccounts({
    ...{
      store: createCloudAccountStore(database),
      database,
      read,
      requireProject,
      provider,
      stopping,
      clock,
    },
    seal: sealOf(secrets, sealedColumns.cloudSecrets),
    usesOf: (uid) => store.namesWith(uid).map((name) => `the cloud configuration ${name}`),
  })
  const pools = createKeptPools({ clock, log, stopping })
  const configs = createCloudConfigs({
    store,
    database,
    read,
    requireProject,
    accounts,
    pools,
    provider,
    clock,
  })
  return {
    ...{ accounts, configs },
    usesOf: (uid) => [...configs.usesOfProject(uid), ...accounts.usesOfProject(uid)],
    stop: () => openStack?.close(),
  }
}
