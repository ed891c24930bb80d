import { scopeCountsOf, createScopeCounts, type ScopeCounts } from '../scope-counts.ts'
import type { Database } from '../../store/database.ts'
import { type DeviceSpec, type EdgeHostHealth, EdgeHostDevice, EdgeHostMeta } from './schemas.ts'
import { createFindTaken, type FindTaken, labelFilters } from '../names.ts'
import type { ListResource } from '../../lists/resource.ts'
import { textColumn, type SqlField, type SqlIndexes, type SqlRow } from '../../lists/sql.ts'

// Columns with values that may be rare among hosts.
const filtered = ['architecture', 'os_version', 'memory_mb', 'cpu_cores', 'service_version', 'health_state']
const all = ['labels', 'os_family', ...filtered]

const indexOf = (column: string) => `
  CREATE INDEX edge_host_${column} ON edge_host (project_uid, ${column}, created_at, uid, ${all.filter((each) => each !== column).join(', ')});`

/**
 * Registration tokens, edge hosts, and the hosts that were removed. Lists are of one scope, so it is the first column of their index. The index
 * has every column that a filter may name, so that a filter that few or nearly all hosts match reads the index alone: the rows are a hundred
 * times as slow, since reported facts are JSON there. A filter that few hosts match begins with one of the other indexes. The number of
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

/** State of the logins of a host. */
export interface Generations {
  /** The generation that the last login got; 0 before the first. */
  readonly last: number
  /** Whether a token of the last login was used: then the host has stored its generation. */
  readonly isUsed: boolean
  /** Whether two hosts with one key were seen; every login is refused then. */
  readonly isTwice: boolean
  /** Whether an administrator has chosen: the next login counts, whatever its generation. */
  readonly isNextAccepted: boolean
}

/** Verdict on a login. */
type GenerationVerdict = { readonly next: number } | 'twice'

/**
 * Judges a login by the generation that the host names. Each login gets the next one, which the host stores before it uses its token. So a disk that
 * was cloned shows: two hosts name the same generation, and the second one names an old one.
 *
 * - the last one: the usual case;
 * - the one before: the reply of the last login was lost, if its token was never used;
 * - a newer one than is known: the platform was restored from a backup;
 * - any other: another host has this key.
 */
export function judgeGeneration(
  { last, isUsed, isTwice, isNextAccepted }: Generations,
  presented: number,
): GenerationVerdict {
  if (isNextAccepted) return { next: Math.max(last, presented) + 1 }
  if (isTwice) return 'twice'
  if (presented >= last) return { next: presented + 1 }
  return presented === last - 1 && !isUsed ? { next: last } : 'twice'
}

type Texts = Readonly<Record<string, string>>

/** Facts that a host reports. */
interface Reported {
  readonly device: DeviceSpec
  readonly hostAddress: string
  readonly macAddress?: string | undefined
  readonly hostChecksum?: string | undefined
  readonly service: { readonly name?: string; readonly version?: string }
}

/** A host as it is stored. Times are milliseconds since 1970. */
export interface HostRecord extends Generations {
  readonly uid: string
  /** Empty for the tenant. */
  readonly projectUid: string
  /** The id that the host gives itself. */
  readonly hostUid: string
  readonly name: string
  readonly labels: Texts
  readonly annotations: Texts
  /** Base64url. */
  readonly publicKey: string
  readonly reported: Reported
  /** Whether an operator has set labels or annotations: from then on its reports do not. */
  readonly isDescribed: boolean
  readonly createdAt: number
  readonly modifiedAt: number
  /** Health of the last heartbeat; absent before the first one. Written by the heartbeats alone, never by `put`. */
  readonly health?: { readonly at: number } & Required<EdgeHostHealth>
}

/** The edge hosts in the database, and the keys of those that were removed. */
export interface HostStore {
  find(uid: string): HostRecord | undefined
  findByHostUid(hostUid: string): HostRecord | undefined
  /** By its public key, base64url. */
  findByKey(publicKey: string): HostRecord | undefined
  readonly findTaken: FindTaken
  put(host: HostRecord): void
  /** Keeps the key, so that the host gets HostRemoved. */
  remove(uid: string, now: number): void
  removedKey(uid: string): string | undefined
  readonly counts: ScopeCounts
}

interface Row {
  readonly uid: string
  readonly project_uid: string
  readonly host_uid: string
  readonly name: string
  readonly labels: string
  readonly annotations: string
  readonly public_key: string
  readonly reported: string
  readonly generation: number
  readonly is_used: number
  readonly is_twice: number
  readonly is_next_accepted: number
  readonly is_described: number
  readonly created_at: number
  readonly modified_at: number
  readonly seen_at: number
  readonly health_state: 'healthy' | 'unhealthy'
  readonly health_message: string
  readonly agent_version: string
}

// Their uids begin with the time at which they were registered.
const mostRemoved = 100_000

const ownColumns =
  'uid, project_uid, host_uid, name, labels, annotations, public_key, reported, generation, is_used, is_twice, is_next_accepted, is_described, created_at, modified_at'
/** The columns of a host, for a list. */
export const hostColumns = `${ownColumns}, seen_at, health_state, health_message, agent_version`

export function createHostStore(database: Database): HostStore {
  const { sql, transaction } = database
  const byUid = sql.prepare(`SELECT ${hostColumns} FROM edge_host WHERE uid = ?`)
  const byHostUid = sql.prepare(`SELECT ${hostColumns} FROM edge_host WHERE host_uid = ?`)
  const byKey = sql.prepare(`SELECT ${hostColumns} FROM edge_host WHERE public_key = ? LIMIT 1`)
  const put = sql.prepare(
    `INSERT INTO edge_host (${ownColumns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (uid) DO UPDATE SET name = excluded.name, labels = excluded.labels, annotations = excluded.annotations,
      reported = excluded.reported, generation = excluded.generation, is_used = excluded.is_used, is_twice = excluded.is_twice,
      is_next_accepted = excluded.is_next_accepted, is_described = excluded.is_described, modified_at = excluded.modified_at`,
  )
  const remove = sql.prepare('DELETE FROM edge_host WHERE uid = ? RETURNING public_key')
  const bury = sql.prepare(
    'INSERT OR REPLACE INTO removed_host (uid, public_key, removed_at) VALUES (?, ?, ?)',
  )
  const forget = sql.prepare(
    'DELETE FROM removed_host WHERE uid <= (SELECT uid FROM removed_host ORDER BY uid DESC LIMIT 1 OFFSET ?)',
  )
  const buried = sql.prepare('SELECT public_key FROM removed_host WHERE uid = ?')
  const one = (row: unknown) =>
    row === undefined ? undefined : toHostRecord(row as Readonly<Record<string, unknown>>)
  return {
    find: (uid) => one(byUid.get(uid)),
    findByHostUid: (hostUid) => one(byHostUid.get(hostUid)),
    findByKey: (publicKey) => one(byKey.get(publicKey)),
    findTaken: createFindTaken(database, 'edge_host'),
    put(host) {
      put.run(
        ...[host.uid, host.projectUid, host.hostUid, host.name],
        ...[JSON.stringify(host.labels), JSON.stringify(host.annotations), host.publicKey],
        ...[JSON.stringify(host.reported), host.last, Number(host.isUsed), Number(host.isTwice)],
        ...[Number(host.isNextAccepted), Number(host.isDescribed), host.createdAt, host.modifiedAt],
      )
    },
    remove(uid, now) {
      transaction(() => {
        const row = remove.get(uid) as { public_key: string } | undefined
        if (row) bury.run(uid, row.public_key, now)
        forget.run(mostRemoved)
      })
    },
    removedKey: (uid) => (buried.get(uid) as { public_key: string } | undefined)?.public_key,
    counts: createScopeCounts(database, 'edge_host'),
  }
}

/** A row of `hostColumns`. */
export function toHostRecord(columns: Readonly<Record<string, unknown>>): HostRecord {
  const row = columns as unknown as Row
  return {
    uid: row.uid,
    projectUid: row.project_uid,
    hostUid: row.host_uid,
    name: row.name,
    labels: JSON.parse(row.labels) as Texts,
    annotations: JSON.parse(row.annotations) as Texts,
    publicKey: row.public_key,
    reported: JSON.parse(row.reported) as Reported,
    last: row.generation,
    isUsed: row.is_used === 1,
    isTwice: row.is_twice === 1,
    isNextAccepted: row.is_next_accepted === 1,
    isDescribed: row.is_described === 1,
    createdAt: row.created_at,
    modifiedAt: row.modified_at,
    ...(row.seen_at === 0
      ? {}
      : {
          health: {
            at: row.seen_at,
            state: row.health_state,
            message: row.health_message,
            agentVersion: row.agent_version,
          },
        }),
  }
}

// A text field of a name that a filter may name is in the index of the scope; see the migration.

/** Queryable fields of the list of hosts. */
export const hostList: ListResource<SqlField> = {
  name: 'edge hosts',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': textColumn('uid'),
    'metadata.name': textColumn('name'),
    'metadata.creationTimestamp': { type: 'time', column: 'created_at' },
    'metadata.lastModifiedTimestamp': { type: 'time', column: 'modified_at' },
    'spec.device.archType': textColumn('architecture'),
    'spec.device.cpu.cores': { type: 'integer', column: 'cpu_cores' },
    'spec.device.memory.sizeInMB': { type: 'integer', column: 'memory_mb' },
    'spec.device.os.family': textColumn('os_family'),
    'spec.device.os.version': textColumn('os_version'),
    'spec.host.hostAddress': textColumn('host_address'),
    'spec.host.hostUid': textColumn('host_uid'),
    'spec.service.version': textColumn('service_version'),
    'status.health.state': textColumn('health_state'),
  },
  families: labelFilters,
  defaultOrder: [{ path: 'metadata.creationTimestamp', direction: -1 }],
  heavy: {
    'spec.device.disks': { column: 'reported', at: '$.device.disks' },
    'spec.device.gpus': { column: 'reported', at: '$.device.gpus' },
    'spec.device.nics': { column: 'reported', at: '$.device.nics' },
  },
  item: EdgeHostDevice,
}

/** Queryable fields of the metadata of hosts: the paths of the list of hosts that are in the index of the scope. */
export const hostMetadataList: ListResource<SqlField> = {
  ...hostList,
  name: 'metadata of edge hosts',
  heavy: {},
  item: EdgeHostMeta,
}

/** All of them are in the index of the scope. */
export const metadataColumns = 'uid, name, architecture, health_state, created_at'

export const toMetadata = (row: SqlRow, isInUse: boolean): EdgeHostMeta => ({
  ...(row.architecture === '' ? {} : { archType: row.architecture as 'amd64' | 'arm64' }),
  edgeHostType: 'edge-native',
  ...(row.health_state === '' ? {} : { healthState: String(row.health_state) }),
  name: String(row.name),
  state: isInUse ? 'in-use' : 'ready',
  uid: String(row.uid),
})

/** The indexes of the table of hosts; see the migration. */
export const hostIndexes: SqlIndexes = {
  whole: 'edge_host_scope',
  unique: ['uid', 'host_uid'],
  narrow: { name: 'edge_host_name', host_address: 'edge_host_address' },
  byColumn: {
    architecture: 'edge_host_architecture',
    os_version: 'edge_host_os_version',
    memory_mb: 'edge_host_memory_mb',
    cpu_cores: 'edge_host_cpu_cores',
    service_version: 'edge_host_service_version',
    health_state: 'edge_host_health_state',
  },
}
