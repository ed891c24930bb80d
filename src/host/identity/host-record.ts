import { randomBytes } from 'node:crypto'
import type { Database } from '../../store/database.ts'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import type { HostFiles } from '../files.ts'
import { readIdentity, type Identity } from './identity.ts'

/** The stored record of this host: its id, when that was chosen, and when its facts last changed. */
export interface HostRecord {
  readonly id: string
  /** Entries for the audit trail: one if this start chose an id, the first or a new one; otherwise none. */
  readonly auditEntries: readonly {
    readonly action: 'create'
    readonly kind: string
    readonly resourceUid: string
    readonly message: string
  }[]
  readonly createdAt: Date
  /**
   * Stores the hash of the facts. If it differs from the stored one, the facts have changed now.
   * @returns the time of the last change
   */
  putFacts(hash: string): Date
  /** Removes the id; the next start chooses one from its sources. */
  forget(): void
}

export interface HostRecordOptions {
  readonly files: HostFiles
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  readonly settings: {
    /** Used as it is. */
    readonly id?: string
    /** The preferred one first; read when no id is stored. */
    readonly identitySources: readonly string[]
  }
}

interface Row {
  id: string
  created_at: number
  facts_hash: string | null
  modified_at: number | null
}

/**
 * Reads the stored record, or chooses an identity and stores it. The stored id is kept across restarts and changes of the
 * hardware; a configured id replaces it.
 */
export async function openHostRecord(options: HostRecordOptions): Promise<HostRecord> {
  const { database, clock, log } = options
  const { sql } = database
  const stored = sql.prepare('SELECT id, created_at, facts_hash, modified_at FROM host').get() as
    Row | undefined
  const identity = await chooseIdentity(options, stored?.id)
  const id = identity?.id ?? `edge-${randomBytes(16).toString('hex')}`
  if (identity === undefined) {
    log.warn(
      { id, sources: options.settings.identitySources },
      'no source of the identity has a usable value, so the id is random; to choose one set host.id, then: systemctl restart edgehostd',
    )
  } else if (stored === undefined) {
    log.info(identity, 'the id of this host is chosen')
  }
  const createdAt = stored?.created_at ?? clock.now()
  const isNew = stored?.id !== id
  if (isNew)
    sql
      .prepare(
        'INSERT INTO host (one, id, created_at) VALUES (1, ?, ?) ON CONFLICT (one) DO UPDATE SET id = excluded.id',
      )
      .run(id, createdAt)

  const update = sql.prepare('UPDATE host SET facts_hash = ?, modified_at = ?')
  let noted = { hash: stored?.facts_hash, modifiedAt: stored?.modified_at ?? createdAt }
  return {
    id,
    auditEntries: isNew
      ? [
          {
            action: 'create',
            kind: 'edgehost',
            resourceUid: id,
            message: `Choose the id of this host, from ${identity?.source ?? 'random'}`,
          },
        ]
      : [],
    createdAt: new Date(createdAt),
    forget: () => sql.exec('DELETE FROM host'),
    putFacts(hash) {
      if (hash !== noted.hash) {
        const modifiedAt = clock.now()
        update.run(hash, modifiedAt)
        noted = { hash, modifiedAt }
      }
      return new Date(noted.modifiedAt)
    },
  }
}

/** A configured id comes before the stored one, and the stored one before the sources of the machine. */
async function chooseIdentity(
  { files, log, settings }: HostRecordOptions,
  stored: string | undefined,
): Promise<Identity | undefined> {
  if (settings.id !== undefined) return { id: settings.id, source: 'configuration' }
  if (stored !== undefined) return { id: stored, source: 'stored' }
  return readIdentity(files, settings.identitySources, log)
}
