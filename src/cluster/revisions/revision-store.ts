import type { Database } from '../../store/database.ts'
import type { ClusterSummary } from '../summary.ts'
import type { ClusterConfiguration } from '../schemas.ts'
import type { Sealed } from '../sealed.ts'
import type { Outcome } from './outcomes.ts'
import type { NewRevision, Revision } from './revision.ts'

/** The revisions of the cluster of this host. */
export interface RevisionStore {
  /** The newest first. */
  list(): readonly Revision[]
  find(generation: number): Revision | undefined
  /** The one with the highest number. */
  newest(): Revision | undefined
  /** The one with the highest number that was wanted, and not made by the host to go back. */
  newestWanted(): Revision | undefined
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

/** What of a revision is sealed. */
interface Secrets {
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
    newestWanted: () => one("WHERE origin <> 'goingBack' ORDER BY generation DESC LIMIT 1"),
    pending: () => one("WHERE outcome IN ('waiting', 'held')"),
    add({ plain, sensitive, reason = '', ...rest }) {
      if (rest.origin !== 'goingBack')
        sql
          .prepare(
            "UPDATE cluster_revision SET outcome = 'superseded', ended_at = ? WHERE outcome IN ('waiting', 'held')",
          )
          .run(rest.at)
      const secrets: Secrets = { ...(plain ? { plain } : {}), sensitive }
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

function revisionOf(row: Row, sealed: Sealed): Revision {
  const { generation, at, by, origin, folder, mark, outcome, reason } = row
  const opened = JSON.parse(sealed.open(row.sealed) ?? '[]') as Secrets | readonly string[]
  // A cluster of a version without revisions has only the values sealed.
  const secrets: Secrets = 'sensitive' in opened ? opened : { sensitive: opened }
  return {
    ...{ generation, at, by, origin, folder, mark, outcome, reason, ...secrets },
    plain: secrets.plain,
    summary: JSON.parse(row.summary) as ClusterSummary,
    posted: JSON.parse(row.posted) as ClusterConfiguration,
    scheduleAt: row.schedule_at,
    endedAt: row.ended_at,
    platformNumber: row.platform_number,
  }
}
