import type { Logger } from 'pino'
import { seeDisk } from '../errors/advice.ts'
import type { Database } from './database.ts'

const intervalMs = 10_000

/**
 * Checks whether a record can be written now. It really writes, namely the current schema version, because a full or
 * read-only disk shows only at a commit. It writes at most once in ten seconds, because any client may ask.
 */
export function createWriteProbe(
  { sql, transaction }: Database,
  { log, monotonic }: { log: Logger; monotonic: () => number },
): () => boolean {
  let askedAt = -Infinity
  let isWritable = false

  function write(): boolean {
    try {
      transaction(() => {
        const { user_version: version } = sql.prepare('PRAGMA user_version').get() as { user_version: number }
        sql.exec(`PRAGMA user_version = ${version}`)
      })
      return true
    } catch (error) {
      log.warn({ err: error }, `the database could not be written; ${seeDisk}`)
      return false
    }
  }

  return () => {
    if (monotonic() - askedAt < intervalMs) return isWritable
    askedAt = monotonic()
    isWritable = write()
    return isWritable
  }
}
