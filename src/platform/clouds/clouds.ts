import type { Ground } from '../../root/room.ts'
import { scopeCountsOf } from '../scope-counts.ts'
import { AppError } from '../../errors/app-error.ts'
import { platformErrors } from '../codes.ts'
import type { CloudsSettings } from '../config.ts'
import { createKeptPools } from './kept-pools.ts'
import { createOpenStack } from './openstack/openstack.ts'
import type { RequireProject } from '../projects/projects.ts'
import { sealedColumns, sealOf } from '../system/secret.ts'
import { createCloudAccounts, type CloudAccounts, createCloudAccountStore } from './accounts.ts'
import { createCloudConfigs, type CloudConfigs, createCloudConfigStore } from './configs.ts'

/** Accounts of a cloud, whose secrets are sealed, and configurations that name pools of its servers. */
export const cloudTables = `
  CREATE TABLE cloud_account (
    uid TEXT PRIMARY KEY,
    project_uid TEXT NOT NULL,
    name TEXT NOT NULL,
    labels TEXT NOT NULL,
    annotations TEXT NOT NULL,
    secret_id TEXT NOT NULL,
    secret_key BLOB NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX cloud_account_scope ON cloud_account (project_uid, created_at, uid);
  CREATE UNIQUE INDEX cloud_account_name ON cloud_account (project_uid, name);${scopeCountsOf('cloud_account')}
  CREATE TABLE cloud_config (
    uid TEXT PRIMARY KEY,
    project_uid TEXT NOT NULL,
    name TEXT NOT NULL,
    labels TEXT NOT NULL,
    annotations TEXT NOT NULL,
    account_uid TEXT NOT NULL REFERENCES cloud_account,
    pools TEXT NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX cloud_config_scope ON cloud_config (project_uid, created_at, uid);
  CREATE INDEX cloud_config_account ON cloud_config (account_uid);
  CREATE UNIQUE INDEX cloud_config_name ON cloud_config (project_uid, name);${scopeCountsOf('cloud_config')}
`

interface CloudPartsOptions {
  readonly requireProject: RequireProject
}

/** Accounts of a cloud, and pools of its servers. */
interface CloudParts {
  readonly accounts: CloudAccounts
  readonly configs: CloudConfigs
  /** Names of resources that block the deletion of a project. */
  usesOf(projectUid: string): readonly string[]
  stop(): void
}

/** @throws Error for a file of authorities that cannot be read */
export async function createCloudParts(
  ground: Ground<{ readonly clouds: CloudsSettings }>,
  { requireProject }: CloudPartsOptions,
): Promise<CloudParts> {
  const { config, database, read, secrets, stopping, clock, log } = ground
  const openStack = await createOpenStack(config.clouds.vendor, clock)
  const provider = () => {
    if (openStack) return openStack
    throw new AppError(
      platformErrors.CloudNotConfigured,
      'this platform has no cloud; an administrator of its machine has to set clouds.vendor.authUrl',
    )
  }
  const store = createCloudConfigStore(database)
  const accounts = createCloudAccounts({
    store: createCloudAccountStore(database),
    database,
    read,
    requireProject,
    provider,
    stopping,
    clock,
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
    accounts,
    configs,
    usesOf: (uid) => [...configs.usesOfProject(uid), ...accounts.usesOfProject(uid)],
    stop: () => openStack?.close(),
  }
}
