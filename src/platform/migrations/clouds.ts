import { scopeCountsOf } from '../scope-counts.ts'

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
