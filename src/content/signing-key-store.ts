import type { SystemEntry } from '../audit/own-entries.ts'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import { fingerprintOf, type SigningKey } from '../upload/signing.ts'

/**
 * Returns since when this host has had its key, and records a change of the key in the trail.
 * @param key the configured key, if any
 * @returns milliseconds since 1970, UTC; undefined without a key
 */
export function noteSigningKey(
  key: SigningKey | undefined,
  {
    database: { sql, transaction },
    record,
    clock,
  }: {
    readonly database: Database
    readonly record: (entry: SystemEntry) => void
    readonly clock: Pick<Clock, 'now'>
  },
): number | undefined {
  const known = sql.prepare('SELECT fingerprint, since FROM signing_key').get() as
    { fingerprint: string; since: number } | undefined
  const fingerprint = key && fingerprintOf(key)
  if (known?.fingerprint === fingerprint) return known?.since
  const since = clock.now()
  transaction(() => {
    sql.exec('DELETE FROM signing_key')
    if (fingerprint !== undefined)
      sql.prepare('INSERT INTO signing_key VALUES (1, ?, ?)').run(fingerprint, since)
  })
  record({
    action: 'update',
    kind: 'signing-key',
    resourceUid: fingerprint ?? '',
    message: key
      ? `Accept only uploads signed by a key of type ${key.kind}`
      : 'Accept uploads without a signature',
  })
  return key && since
}
