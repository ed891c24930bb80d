import { createHash } from 'node:crypto'
import type { SystemEntry } from '../audit/own-entries.ts'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import type { SigningKey } from './signing.ts'

/**
 * Since when this host has had its key; the trail is told where that has changed.
 * @param key the one of the configuration, if there is one
 * @returns milliseconds since 1970, UTC; nothing without a key
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
    message: key ? `Take signed uploads only, by a key of ${key.kind}` : 'Take uploads without a signature',
  })
  return key && since
}

/** SHA-256 of its SubjectPublicKeyInfo, hex: the same for every way of writing the key. */
const fingerprintOf = ({ key }: SigningKey) =>
  createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex')
