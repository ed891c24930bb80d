import type { Database } from '../store/database.ts'
import type { ClusterConfiguration } from './schemas.ts'
import type { NewRevision, Sealed } from './desired/revisions.ts'
import type { Seen } from './loop/seen.ts'
import { started, pending, type ClusterStatus } from './loop/status.ts'
import type { ClusterSummary } from './desired/desired-state.ts'

/** A renewal of the certificates that an administrator has asked for. */
export interface Renewal {
  readonly uid: string
  readonly by: string
  /** Milliseconds since 1970, as all times. */
  readonly askedAt: number
  /** Null while it is under way. */
  readonly endedAt: number | null
}

export const isUnderWay = (renewal: Renewal | null): renewal is Renewal & { endedAt: null } =>
  renewal !== null && renewal.endedAt === null

/** Times for which a revision has been applied, milliseconds. */
export interface Progress {
  readonly generation: number
  readonly inChangeMs: number
  readonly elsewhereMs: number
}

/** The stored cluster; its parts are in the folder of its generation. */
export interface ClusterRecord {
  readonly uid: string
  readonly name: string
  readonly generation: number
  /** `DesiredState.folder` */
  readonly folder: string
  readonly summary: ClusterSummary
  /** The posted configuration, with sensitive values masked. */
  readonly posted: ClusterConfiguration
  /** Values of sensitive variables, in plain text; empty where the secret of the state folder was replaced since. */
  readonly sensitive: readonly string[]
  /** `Sealed.mark` of the posted configuration. */
  readonly mark: Uint8Array
  /** Milliseconds since 1970, as are all times. */
  readonly createdAt: number
  readonly modifiedAt: number
  readonly deleteRequestedAt: number | null
  /** The last generation with which it was Running; 0 before. */
  readonly ranGeneration: number
  /** The last revision with which it was Running; 0 before. */
  readonly goodGeneration: number
  /** The last reported one. */
  readonly status: ClusterStatus
  /** Observations reported as events. */
  readonly seen: Seen
  /** The last renewal of its certificates that was asked for. */
  readonly renewal: Renewal | null
  /** Times for which the active revision has been applied; null before they were counted. */
  readonly progress: Progress | null
}

export const isDeleting = ({ deleteRequestedAt }: Pick<ClusterRecord, 'deleteRequestedAt'>): boolean =>
  deleteRequestedAt !== null

/** Whether it was Running with the present desired state. */
export const hasRun = ({ ranGeneration, generation }: ClusterRecord): boolean => ranGeneration === generation

/** Whether it was Running with an earlier revision, or is taken back to it. */
export const isUpdate = ({ goodGeneration }: Pick<ClusterRecord, 'goodGeneration'>): boolean =>
  goodGeneration !== 0

export type NewCluster = Pick<
  ClusterRecord,
  'uid' | 'name' | 'generation' | 'folder' | 'summary' | 'posted' | 'sensitive' | 'mark'
> & { readonly at: number }

/** The one cluster of this host. */
export interface ClusterStore {
  /** The same object until it changes. */
  current(): ClusterRecord | undefined
  add(cluster: NewCluster): void
  /** Makes another revision the desired one. */
  activate(revision: Omit<NewRevision, 'plain'>, at: number): void
  requestDeletion(at: number): void
  /** It is Running with this generation, which is good by that. */
  noteRan(generation: number): void
  noteStatus(status: ClusterStatus): void
  noteSeen(seen: Seen): void
  noteProgress(progress: Progress): void
  noteRenewal(renewal: Renewal): void
  /** The certificates are renewed; without a renewal that was asked for: nothing. */
  endRenewal(at: number): void
  remove(): void
}

interface Row {
  readonly uid: string
  readonly name: string
  readonly generation: number
  readonly folder: string
  readonly summary: string
  readonly posted: string
  readonly sealed: Uint8Array
  readonly mark: Uint8Array
  readonly created_at: number
  readonly modified_at: number
  readonly delete_requested_at: number | null
  readonly ran_generation: number
  readonly good_generation: number
  readonly standing: string
  readonly seen: string
  readonly renewal: string | null
  readonly progress: string | null
}

export function createClusterStore({ sql }: Database, sealed: Sealed): ClusterStore {
  let known: ClusterRecord | undefined
  const read = () => {
    const row = sql.prepare('SELECT * FROM cluster').get() as Row | undefined
    return row && recordOf(row, sealed)
  }
  /** Runs a change; the record is read again, also where the change is rolled back. */
  const change = (statement: string, ...values: (string | number | Uint8Array)[]) => {
    known = undefined
    sql.prepare(statement).run(...values)
  }
  return {
    current() {
      // Within a transaction that may be rolled back nothing is kept.
      if (sql.isTransaction) return read()
      known ??= read()
      return known
    },
    add({ uid, name, generation, folder, summary, posted, sensitive, mark, at }) {
      change(
        `INSERT INTO cluster (one, uid, name, generation, folder, summary, posted, sealed, mark, created_at, modified_at, standing, seen)
        VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '{}')`,
        ...[uid, name, generation, folder, JSON.stringify(summary), JSON.stringify(posted)],
        ...[sealed.seal(JSON.stringify(sensitive)), mark, at, at, JSON.stringify(pending)],
      )
    },
    requestDeletion: (at) =>
      change('UPDATE cluster SET delete_requested_at = ? WHERE delete_requested_at IS NULL', at),
    activate: ({ generation, folder, summary, posted, sensitive, mark }, at) =>
      change(
        `UPDATE cluster SET generation = ?, folder = ?, summary = ?, posted = ?, sealed = ?, mark = ?, modified_at = ?,
        ran_generation = 0, progress = NULL, standing = ?`,
        ...[generation, folder, JSON.stringify(summary), JSON.stringify(posted)],
        ...[sealed.seal(JSON.stringify(sensitive)), mark, at, JSON.stringify(started)],
      ),
    noteRan: (generation) =>
      change('UPDATE cluster SET ran_generation = ?1, good_generation = ?1', generation),
    noteStatus: (status) => change('UPDATE cluster SET standing = ?', JSON.stringify(status)),
    noteSeen: (seen) => change('UPDATE cluster SET seen = ?', JSON.stringify(seen)),
    noteProgress: (progress) => change('UPDATE cluster SET progress = ?', JSON.stringify(progress)),
    noteRenewal: (renewal) => change('UPDATE cluster SET renewal = ?', JSON.stringify(renewal)),
    endRenewal: (at) =>
      change(
        "UPDATE cluster SET renewal = json_set(renewal, '$.endedAt', ?) WHERE json_extract(renewal, '$.endedAt') IS NULL AND renewal IS NOT NULL",
        at,
      ),
    remove: () => change('DELETE FROM cluster'),
  }
}

function recordOf(row: Row, sealed: Sealed): ClusterRecord {
  const { uid, name, generation, folder, mark } = row
  return {
    uid,
    name,
    generation,
    folder,
    mark,
    summary: JSON.parse(row.summary) as ClusterSummary,
    posted: JSON.parse(row.posted) as ClusterConfiguration,
    sensitive: JSON.parse(sealed.open(row.sealed) ?? '[]') as string[],
    createdAt: row.created_at,
    modifiedAt: row.modified_at,
    deleteRequestedAt: row.delete_requested_at,
    ranGeneration: row.ran_generation,
    goodGeneration: row.good_generation,
    status: JSON.parse(row.standing) as ClusterStatus,
    seen: JSON.parse(row.seen) as Seen,
    renewal: JSON.parse(row.renewal ?? 'null') as Renewal | null,
    progress: JSON.parse(row.progress ?? 'null') as Progress | null,
  }
}
