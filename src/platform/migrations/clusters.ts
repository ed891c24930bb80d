import { scopeCountsOf } from '../scope-counts.ts'

/**
 * Clusters on hosts, one on each. The definition of each is in the folder `clusters/<files_uid>` of the state; `digest` is empty where there is
 * none to download. What has secrets is sealed: the given values, the description for the host, the kubeconfig. The profiles that a cluster
 * uses are a table of their own, to find the clusters of a profile. Long columns come last: a list reads none of them.
 */
export const clusterTables = `
  CREATE TABLE cluster (
    uid TEXT PRIMARY KEY,
    project_uid TEXT NOT NULL,
    name TEXT NOT NULL,
    host_uid TEXT NOT NULL UNIQUE,
    number INTEGER NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    modified_at INTEGER NOT NULL,
    delete_requested_at INTEGER,
    files_uid TEXT NOT NULL,
    definition_bytes INTEGER NOT NULL,
    digest TEXT NOT NULL,
    labels TEXT NOT NULL,
    annotations TEXT NOT NULL,
    heartbeat TEXT NOT NULL,
    conditions TEXT NOT NULL,
    templates TEXT NOT NULL,
    configuration TEXT NOT NULL,
    shown_values TEXT NOT NULL,
    packs TEXT NOT NULL,
    steps TEXT NOT NULL,
    kubeconfig BLOB,
    given BLOB NOT NULL,
    head BLOB NOT NULL
  ) STRICT;
  CREATE INDEX cluster_scope ON cluster (project_uid, created_at, uid);
  CREATE UNIQUE INDEX cluster_name ON cluster (project_uid, name);${scopeCountsOf('cluster')}
  CREATE TABLE cluster_profile_use (
    profile_uid TEXT NOT NULL,
    cluster_uid TEXT NOT NULL REFERENCES cluster ON DELETE CASCADE,
    PRIMARY KEY (profile_uid, cluster_uid)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX cluster_profile_use_cluster ON cluster_profile_use (cluster_uid);
`
