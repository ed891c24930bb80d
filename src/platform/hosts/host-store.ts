import type { Database } from '../../store/database.ts'
import type { DeviceSpec, EdgeHostHealth } from '../schemas/edge-hosts.ts'
import type { Generations } from './generations.ts'
import { createScopeCounts, type ScopeCounts } from '../scope-counts.ts'
import { createFindTaken, type FindTaken } from '../taken-names.ts'

type Texts = Readonly<Record<string, string>>

/** What a host reports of itself. */
export interface Reported {
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
  /** Of the last heartbeat; absent before the first one. Written by the heartbeats alone, never by `put`. */
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
  /** Keeps the key, so that the host can be told. */
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
            ...{ at: row.seen_at, state: row.health_state, message: row.health_message },
            agentVersion: row.agent_version,
          },
        }),
  }
}
