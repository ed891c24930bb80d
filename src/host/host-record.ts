import { randomBytes } from 'node:crypto'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { HostFiles } from './files.ts'
import { chooseIdentity } from './identity.ts'

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
export async function openHostRecord(options: {
  readonly files: HostFiles
  readonly database: Database
  readonly clock: Clock
  readonly log: Logger
  readonly configuredId: string | undefined
}): Promise<HostRecord> {
  const { files, database, clock, log, configuredId } = options
  const { sql } = database
  const stored = sql.prepare('SELECT id, created_at, facts_hash, modified_at FROM host').get() as
    Row | undefined
  const identity = chooseIdentity({
    configured: configuredId,
    stored: stored?.id,
    productUuid: await files.text('/sys/class/dmi/id/product_uuid'),
    machineId: await files.text('/etc/machine-id'),
  })
  const id = identity?.id ?? `edge-${randomBytes(16).toString('hex')}`
  if (identity === undefined) {
    log.warn({ id }, 'the machine has neither a product UUID nor a machine-id: its id is random')
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
