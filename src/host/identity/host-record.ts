import { randomBytes } from 'node:crypto'
import type { Database } from '../../store/database.ts'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import type { HostFiles } from '../files.ts'
import { readIdentity, type Identity } from './identity.ts'

/** What is stored about this host: who it is, since when, and when its facts last changed. */
export interface HostRecord {
  readonly id: string
  readonly createdAt: Date
  /**
   * Notes the facts by their hash. A hash that differs from the stored one moves the time of the last change.
   * @returns that time
   */
  noteFacts(hash: string): Date
}

export interface HostRecordOptions {
  readonly files: HostFiles
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  /** `host.id` of the configuration, taken whole. */
  readonly configuredId: string | undefined
  /** `host.identitySources` of the configuration, the strongest first; asked when nothing is stored. */
  readonly identitySources: readonly string[]
  /** Told when the host gets an id, its first or another one. */
  readonly onNewIdentity?: ((identity: Identity) => void) | undefined
}

interface Row {
  id: string
  created_at: number
  facts_hash: string | null
  modified_at: number | null
}

/**
 * Reads the stored record, or chooses an identity and stores it. The last one chosen stays, over restarts
 * and changes of the hardware; a configured id wins over it and takes its place.
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
      { id, sources: options.identitySources },
      'no source has an identity: the id is random; to choose one set host.id, then: systemctl restart edgehostd',
    )
  } else if (stored === undefined) {
    log.info(identity, 'the id of this host is chosen')
  }
  const createdAt = stored?.created_at ?? clock.now()
  if (stored?.id !== id) {
    sql
      .prepare(
        'INSERT INTO host (one, id, created_at) VALUES (1, ?, ?) ON CONFLICT (one) DO UPDATE SET id = excluded.id',
      )
      .run(id, createdAt)
    options.onNewIdentity?.(identity ?? { id, source: 'random' })
  }

  const update = sql.prepare('UPDATE host SET facts_hash = ?, modified_at = ?')
  let noted = { hash: stored?.facts_hash, modifiedAt: stored?.modified_at ?? createdAt }
  return {
    id,
    createdAt: new Date(createdAt),
    noteFacts(hash) {
      if (hash !== noted.hash) {
        const modifiedAt = clock.now()
        update.run(hash, modifiedAt)
        noted = { hash, modifiedAt }
      }
      return new Date(noted.modifiedAt)
    },
  }
}

/** A configured id wins over the stored one, that over what the machine says now. */
async function chooseIdentity(
  { files, log, configuredId, identitySources }: HostRecordOptions,
  stored: string | undefined,
): Promise<Identity | undefined> {
  if (configuredId !== undefined) return { id: configuredId, source: 'configuration' }
  if (stored !== undefined) return { id: stored, source: 'stored' }
  return readIdentity(files, identitySources, log)
}
