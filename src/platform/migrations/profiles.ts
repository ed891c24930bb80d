import { scopeCountsOf } from '../scope-counts.ts'

/**
 * Cluster profiles; most of each is in the folder `profiles/<files_uid>` of the state. Its variables are sealed, since their defaults may be
 * secret. The names of its packs are a table of their own, to find the profiles that use a pack.
 */
export const profileTables = `
  CREATE TABLE cluster_profile (
    uid TEXT PRIMARY KEY,
    project_uid TEXT NOT NULL,
    files_uid TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    type TEXT NOT NULL,
    cloud_type TEXT NOT NULL,
    description TEXT NOT NULL,
    labels TEXT NOT NULL,
    annotations TEXT NOT NULL,
    metadata TEXT NOT NULL,
    variables BLOB,
    shown_variables TEXT NOT NULL,
    packs TEXT NOT NULL,
    is_published INTEGER NOT NULL,
    has_user_macros INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    modified_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX cluster_profile_scope ON cluster_profile (project_uid, created_at, uid);
  CREATE UNIQUE INDEX cluster_profile_name ON cluster_profile (project_uid, name, version);${scopeCountsOf('cluster_profile')}
  CREATE TABLE cluster_profile_pack (
    name TEXT NOT NULL,
    profile_uid TEXT NOT NULL REFERENCES cluster_profile ON DELETE CASCADE,
    PRIMARY KEY (name, profile_uid)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX cluster_profile_pack_profile ON cluster_profile_pack (profile_uid);
`
