import { scopeCountsOf } from '../scope-counts.ts'

// Columns of which a value may be that of few hosts.
const filtered = ['architecture', 'os_version', 'memory_mb', 'cpu_cores', 'service_version', 'health_state']
const all = ['labels', 'os_family', ...filtered]

const indexOf = (column: string) => `
  CREATE INDEX edge_host_${column} ON edge_host (project_uid, ${column}, created_at, uid, ${all.filter((each) => each !== column).join(', ')});`

/**
 * Registration tokens, edge hosts, and the hosts that were removed. Lists are of one scope, so it is the first column of their index. The index
 * has every column that a filter may name, so that a filter that few or nearly all hosts match reads the index alone: the rows are a hundred
 * times as slow, since what hosts report is JSON there. A filter that few hosts match begins with one of the other indexes. The number of
 * hosts of each scope is kept.
 */
export const edgeHostTables = `
  CREATE TABLE registration_token (
    uid TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL UNIQUE,
    project_uid TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    shown TEXT NOT NULL,
    labels TEXT NOT NULL,
    annotations TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    is_active INTEGER NOT NULL,
    maximum_hosts INTEGER NOT NULL,
    hosts INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    modified_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX registration_token_project ON registration_token (project_uid);
  CREATE TABLE edge_host (
    uid TEXT PRIMARY KEY,
    project_uid TEXT NOT NULL,
    host_uid TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    labels TEXT NOT NULL,
    annotations TEXT NOT NULL,
    public_key TEXT NOT NULL,
    reported TEXT NOT NULL,
    generation INTEGER NOT NULL,
    is_used INTEGER NOT NULL,
    is_twice INTEGER NOT NULL,
    is_next_accepted INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    modified_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL DEFAULT 0,
    health_state TEXT NOT NULL DEFAULT '',
    health_message TEXT NOT NULL DEFAULT '',
    agent_version TEXT NOT NULL DEFAULT '',
    architecture TEXT AS (coalesce(reported ->> '$.device.archType', '')),
    os_family TEXT AS (coalesce(reported ->> '$.device.os.family', '')),
    os_version TEXT AS (coalesce(reported ->> '$.device.os.version', '')),
    memory_mb INTEGER AS (coalesce(reported ->> '$.device.memory.sizeInMB', 0)),
    cpu_cores INTEGER AS (coalesce(reported ->> '$.device.cpu.cores', 0)),
    host_address TEXT AS (coalesce(reported ->> '$.hostAddress', '')),
    service_version TEXT AS (coalesce(reported ->> '$.service.version', ''))
  ) STRICT;
  CREATE INDEX edge_host_scope ON edge_host (project_uid, created_at, uid, name, labels, architecture, os_family, os_version, memory_mb,
    cpu_cores, host_address, service_version, health_state);
  CREATE INDEX edge_host_name ON edge_host (project_uid, name);
  CREATE INDEX edge_host_address ON edge_host (project_uid, host_address);
${filtered.map(indexOf).join('')}${scopeCountsOf('edge_host')}
  CREATE TABLE removed_host (
    uid TEXT PRIMARY KEY,
    public_key TEXT NOT NULL,
    removed_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
`

/** A key belongs to one host; a database of before may have one twice, so it is not unique. */
export const edgeHostKeys = 'CREATE INDEX edge_host_key ON edge_host (public_key);'

/** Whether an operator has set the labels and annotations of a host. */
export const edgeHostDescribed = 'ALTER TABLE edge_host ADD COLUMN is_described INTEGER NOT NULL DEFAULT 0;'
