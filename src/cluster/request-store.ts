import type { Database } from '../store/database.ts'

/** A request that created a cluster, by its `Idempotency-Key`. */
export interface StoredRequest {
  readonly uid: string
  /** `Sealed.mark` of its body. */
  readonly mark: Uint8Array
}

/** Requests that created a cluster, so that repeating one creates no second cluster. */
export interface RequestStore {
  find(key: string, now: number): StoredRequest | undefined
  add(key: string, request: StoredRequest, now: number): void
}

const keptMs = 86_400_000
// Only accepted requests are kept, and there is one cluster; this is far more than a host has in a day.
const mostKept = 1_000

export function createRequestStore({ sql }: Database): RequestStore {
  return {
    find(key, now) {
      const found = sql
        .prepare('SELECT uid, mark FROM cluster_request WHERE key = ? AND at > ?')
        .get(key, now - keptMs)
      return found as StoredRequest | undefined
    },
    add(key, { uid, mark }, now) {
      sql.prepare('DELETE FROM cluster_request WHERE at <= ?').run(now - keptMs)
      sql
        .prepare(
          `DELETE FROM cluster_request WHERE key NOT IN (
            SELECT key FROM cluster_request ORDER BY at DESC LIMIT ?)`,
        )
        .run(mostKept - 1)
      sql
        .prepare('INSERT OR REPLACE INTO cluster_request (key, mark, uid, at) VALUES (?, ?, ?, ?)')
        .run(key, mark, uid, now)
    },
  }
}
