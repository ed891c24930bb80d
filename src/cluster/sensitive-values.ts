import { createSecrets } from '../secrets/secrets.ts'
import { readDatabase } from '../store/statistics.ts'
import { createSealed, parseSecrets } from './desired/revisions.ts'

/** What a program has to know of the cluster of a host before it passes on texts about it. */
export interface SensitiveValues {
  /** When the cluster was accepted, milliseconds since 1970: earlier lines of the journal may have values of another one. */
  readonly since: number
  /** Values of sensitive variables and those derived of them, of the cluster and of all its stored revisions; plain text. */
  readonly values: readonly string[]
}

/**
 * Reads the sensitive values of the cluster from the database of the daemon, whether it runs or not.
 * @param database path of the database
 * @param secret of the state folder, with which they are sealed
 * @returns undefined where there is no cluster
 * @throws Error where they cannot be read, as with another secret
 */
export function readSensitiveValues(database: string, secret: Buffer): SensitiveValues | undefined {
  const { open } = createSealed(createSecrets(secret))
  return readDatabase(database, (sql) => {
    const cluster = sql.prepare('SELECT created_at AS since FROM cluster').get() as
      { readonly since: number } | undefined
    if (!cluster) return undefined
    const rows = sql
      .prepare('SELECT sealed FROM cluster UNION ALL SELECT sealed FROM cluster_revision')
      .all() as unknown as { readonly sealed: Uint8Array }[]
    const values = rows.flatMap(({ sealed }) => {
      const opened = open(sealed)
      if (opened === undefined) throw new Error('they are sealed with another secret of the state folder')
      return parseSecrets(opened).sensitive
    })
    return { since: cluster.since, values: [...new Set(values)] }
  })
}
