import { createHmac } from 'node:crypto'
import { createSeal, type Seal } from '../../secrets/seal.ts'
import type { Secrets } from '../../secrets/secrets.ts'
import type { ClusterConfiguration } from '../schemas.ts'
import type { Origin, Outcome } from './schemas.ts'
import type { ClusterSummary } from './desired-state.ts'
import type { Database } from '../../store/database.ts'

/** Encrypts secrets of a cluster for the database, with keys that only this host has. */
export interface Sealed extends Seal {
  /** A mark of a text, equal for equal texts, from which the text cannot be guessed without the key. */
  mark(text: string): Buffer
}

export function createSealed(secrets: Secrets): Sealed {
  const markKey = secrets.derive('marks of cluster configurations')
  return {
    ...createSeal(secrets.derive('sensitive values of the cluster')),
    mark: (text) => createHmac('sha256', markKey).update(text).digest(),
  }
}

/** An accepted state of the cluster, one for each write that changes something. */
export interface Revision {
  /** Its number; `DesiredState.generation`. */
  readonly generation: number
  /** Time of acceptance; milliseconds since 1970, as are all times. */
  readonly at: number
  /** The account that wrote it; empty for a way back. */
  readonly by: string
  readonly origin: Origin
  /** `DesiredState.folder` */
  readonly folder: string
  readonly summary: ClusterSummary
  /** The whole configuration, with sensitive values masked. */
  readonly posted: ClusterConfiguration
  /** The same in plain text; undefined where the secret of the state folder was replaced since. */
  readonly plain: ClusterConfiguration | undefined
  /** Values of sensitive variables, in plain text; empty where the secret of the state folder was replaced since. */
  readonly sensitive: readonly string[]
  /** `Sealed.mark` of the posted configuration. */
  readonly mark: Uint8Array
  readonly outcome: Outcome
  /** Why it is held or has failed; empty otherwise. */
  readonly reason: string
  /** Earliest start; null: at once. */
  readonly scheduleAt: number | null
  /** Time of its success or failure; null before. */
  readonly endedAt: number | null
  /** Its number on the platform, where that ordered it; null for one requested here. */
  readonly platformNumber: number | null
}

export type NewRevision = Omit<Revision, 'endedAt' | 'reason' | 'plain' | 'platformNumber'> & {
  readonly plain: ClusterConfiguration | undefined
  readonly reason?: string
  readonly platformNumber?: number | null | undefined
}

/** The revisions of the cluster of this host. */
export interface RevisionStore {
  /** The newest first. */
  list(): readonly Revision[]
  find(generation: number): Revision | undefined
  /** The one with the highest number. */
  newest(): Revision | undefined
  /** The requested one with the highest number, not made by the host to go back. */
  newestDesired(): Revision | undefined
  /** The one that waits or is held. */
  pending(): Revision | undefined
  /** Adds one; the one that waits or is held is superseded by it, unless it is a way back. */
  add(revision: NewRevision): void
  note(generation: number, outcome: Outcome, end?: { readonly reason?: string; readonly at: number }): void
  remove(generation: number): void
  clear(): void
}

interface Row {
  readonly generation: number
  readonly at: number
  readonly by: string
  readonly origin: Revision['origin']
  readonly folder: string
  readonly summary: string
  readonly posted: string
  readonly sealed: Uint8Array
  readonly mark: Uint8Array
  readonly outcome: Outcome
  readonly reason: string
  readonly schedule_at: number | null
  readonly ended_at: number | null
  readonly platform_number: number | null
}

/** Sealed part of a revision. */
interface SecretsOfRevision {
  readonly plain?: ClusterConfiguration
  readonly sensitive: readonly string[]
}

export function createRevisionStore({ sql }: Database, sealed: Sealed): RevisionStore {
  const one = (condition: string, ...values: number[]) => {
    const row = sql.prepare(`SELECT * FROM cluster_revision ${condition}`).get(...values) as Row | undefined
    return row && revisionOf(row, sealed)
  }
  return {
    list: () =>
      (sql.prepare('SELECT * FROM cluster_revision ORDER BY generation DESC').all() as unknown as Row[]).map(
        (row) => revisionOf(row, sealed),
      ),
    find: (generation) => one('WHERE generation = ?', generation),
    newest: () => one('ORDER BY generation DESC LIMIT 1'),
    newestDesired: () => one("WHERE origin <> 'goingBack' ORDER BY generation DESC LIMIT 1"),
    pending: () => one("WHERE outcome IN ('waiting', 'held')"),
    add({ plain, sensitive, reason = '', ...rest }) {
      if (rest.origin !== 'goingBack')
        sql
          .prepare(
            "UPDATE cluster_revision SET outcome = 'superseded', ended_at = ? WHERE outcome IN ('waiting', 'held')",
          )
          .run(rest.at)
      const secrets: SecretsOfRevision = { ...(plain ? { plain } : {}), sensitive }
      sql
        .prepare(
          `INSERT INTO cluster_revision (generation, at, by, origin, folder, summary, posted, sealed, mark, outcome, reason, schedule_at, platform_number)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        )
        .run(
          ...[rest.generation, rest.at, rest.by, rest.origin, rest.folder, JSON.stringify(rest.summary)],
          ...[JSON.stringify(rest.posted), sealed.seal(JSON.stringify(secrets)), rest.mark],
          ...[rest.outcome, reason, rest.scheduleAt, rest.platformNumber ?? null],
        )
    },
    note(generation, outcome, end) {
      sql
        .prepare('UPDATE cluster_revision SET outcome = ?, reason = ?, ended_at = ? WHERE generation = ?')
        .run(outcome, end?.reason ?? '', end?.at ?? null, generation)
    },
    remove: (generation) =>
      void sql.prepare('DELETE FROM cluster_revision WHERE generation = ?').run(generation),
    clear: () => sql.exec('DELETE FROM cluster_revision'),
  }
}

/** The sealed part of a cluster or a revision. A cluster, and a revision of a version without revisions, has only the values sealed. */
export function parseSecrets(text: string): SecretsOfRevision {
  const opened = JSON.parse(text) as SecretsOfRevision | readonly string[]
  return 'sensitive' in opened ? opened : { sensitive: opened }
}

function revisionOf(row: Row, sealed: Sealed): Revision {
  const { generation, at, by, origin, folder, mark, outcome, reason } = row
  const secrets = parseSecrets(sealed.open(row.sealed) ?? '[]')
  return {
    generation,
    at,
    by,
    origin,
    folder,
    mark,
    outcome,
    reason,
    ...secrets,
    plain: secrets.plain,
    summary: JSON.parse(row.summary) as ClusterSummary,
    posted: JSON.parse(row.posted) as ClusterConfiguration,
    scheduleAt: row.schedule_at,
    endedAt: row.ended_at,
    platformNumber: row.platform_number,
  }
}
