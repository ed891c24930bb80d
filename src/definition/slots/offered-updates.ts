import type { Database } from '../../store/database.ts'

/**
 * Remembers which bundles need not be offered as an update any more. The slot `update` cannot say so, since its row goes when
 * an administrator discards the update.
 */
export interface OfferedUpdates {
  /** Bundles published at this time or before have been offered; milliseconds since 1970, UTC. */
  until(): number
  set(publishedAt: number): void
}

export function createOfferedUpdates({ sql }: Database): OfferedUpdates {
  const select = sql.prepare('SELECT published_at FROM definition_offered')
  const replace = sql.prepare('INSERT OR REPLACE INTO definition_offered VALUES (1, ?)')
  return {
    until: () => (select.get() as { published_at: number } | undefined)?.published_at ?? 0,
    set: (publishedAt) => void replace.run(publishedAt),
  }
}
