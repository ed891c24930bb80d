import { randomUUID } from 'node:crypto'
import type { SystemEntry } from '../audit/own-entries.ts'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'

/** The tenant: all that one platform manages. */
export interface Tenant {
  readonly uid: string
  /** Audit records of what was created, to be recorded once there is a trail. */
  readonly auditEntries: readonly SystemEntry[]
}

/** Whether the database has a tenant: only one that began empty has none. */
export const hasTenant = ({ sql }: Database): boolean =>
  sql.prepare('SELECT 1 FROM tenant').get() !== undefined

/** Whether a platform has run on the database: the first record of its trail comes after the tenant and the secret. */
export const hasTrail = ({ sql }: Database): boolean => sql.prepare('SELECT 1 FROM audit').get() !== undefined

/** Reads the tenant, and makes it at the first start. */
export function openTenant({
  database: { sql },
  clock,
}: {
  readonly database: Database
  readonly clock: Clock
}): Tenant {
  const known = sql.prepare('SELECT uid FROM tenant').get() as { uid: string } | undefined
  if (known) return { uid: known.uid, auditEntries: [] }
  const uid = randomUUID()
  sql.prepare('INSERT INTO tenant (one, uid, created_at) VALUES (1, ?, ?)').run(uid, clock.now())
  return {
    uid,
    auditEntries: [{ action: 'create', kind: 'tenant', resourceUid: uid, message: 'Make the tenant' }],
  }
}
