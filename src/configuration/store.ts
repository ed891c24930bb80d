import { createHmac } from 'node:crypto'
import type { Seal } from '../secrets/seal.ts'
import type { Database } from '../store/database.ts'

/** The configuration that was accepted, in plain text. */
export interface Wanted {
  /** As they were sent; base64 of PEM. */
  readonly caCerts: readonly string[]
  /** Each certificate of them once, PEM. */
  readonly certificates: readonly string[]
  /** URLs in one spelling, with their logins; undefined for none. */
  readonly httpProxy: string | undefined
  readonly httpsProxy: string | undefined
  /** As it was sent; empty for none. */
  readonly noProxy: string
}

/** The accepted configuration and its progress. */
export interface Stored {
  readonly uid: string
  /** It grows with each change, also over the loss of the database, so that a change that comes late is known by it. */
  readonly revision: number
  readonly wanted: Wanted
  /** Networks of this host that need no proxy. */
  readonly ranges: readonly string[]
  /** `Store.markOf` of the configuration in place; empty where that is not known. */
  readonly placed: string
  /** Why the last try failed; empty otherwise. */
  readonly reason: string
}

/** The one configuration of this host. Its parts are sealed: they may have a password. */
export interface ConfigurationStore {
  /** The same object until it changes; undefined where there never was one, or its secret was replaced. */
  current(): Stored | undefined
  put(next: Pick<Stored, 'uid' | 'wanted' | 'ranges'> & { readonly at: number }): void
  note(change: Partial<Pick<Stored, 'placed' | 'reason' | 'ranges'>>): void
  /** A text that says whether two contents are equal, and nothing of them. */
  markOf(content: unknown): string
}

interface Row {
  readonly uid: string
  readonly revision: number
  readonly sealed: Uint8Array
  readonly ranges: string
  readonly placed: string
  readonly reason: string
}

/** Seconds since 1970 from which revisions are counted: SQLite has 31 bits for one. */
const beginning = 1_700_000_000

/** @param key of `Secrets.derive`, for the marks */
export function openConfigurationStore(database: Database, seal: Seal, key: Buffer): ConfigurationStore {
  const { sql } = database
  const select = sql.prepare('SELECT uid, revision, sealed, ranges, placed, reason FROM host_configuration')
  let known: Stored | undefined
  let isRead = false

  function read(): Stored | undefined {
    const row = select.get() as unknown as Row | undefined
    const text = row && seal.open(row.sealed)
    if (row === undefined || text === undefined) return undefined
    const { uid, revision, placed, reason, ranges } = row
    const wanted = JSON.parse(text) as Wanted
    return { uid, revision, wanted, ranges: JSON.parse(ranges) as string[], placed, reason }
  }
  const current = () => {
    if (!isRead) known = read()
    isRead = true
    return known
  }

  return {
    current,
    put({ uid, wanted, ranges, at }) {
      isRead = false
      // A row that cannot be opened any more has a revision too.
      sql
        .prepare(
          `INSERT INTO host_configuration (one, uid, revision, sealed, ranges, placed, reason) VALUES (1, ?, ?, ?, ?, '', '')
          ON CONFLICT (one) DO UPDATE SET uid = excluded.uid, revision = max(revision + 1, excluded.revision), sealed = excluded.sealed, ranges = excluded.ranges, reason = ''`,
        )
        .run(
          uid,
          Math.floor(at / 1_000) - beginning,
          seal.seal(JSON.stringify(wanted)),
          JSON.stringify(ranges),
        )
    },
    note({ placed, reason, ranges }) {
      isRead = false
      sql
        .prepare(
          'UPDATE host_configuration SET placed = coalesce(?, placed), reason = coalesce(?, reason), ranges = coalesce(?, ranges)',
        )
        .run(placed ?? null, reason ?? null, ranges === undefined ? null : JSON.stringify(ranges))
    },
    markOf: (content) => createHmac('sha256', key).update(JSON.stringify(content)).digest('hex'),
  }
}
