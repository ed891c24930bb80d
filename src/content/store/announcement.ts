import { join } from 'node:path'
import type { Logger } from '../../system/log.ts'
import type { IndexedBundle } from './content-index.ts'
import type { ContentDefinitions } from './definitions.ts'
import { hexOf, type ContentFolder } from './folder.ts'

export interface AnnouncementOptions {
  readonly folder: ContentFolder
  /** Published bundles, the newest first; undefined while the store is not open. */
  readonly bundles: () => readonly IndexedBundle[] | undefined
  readonly definitions: ContentDefinitions | undefined
  readonly log: Logger
}

/**
 * Tells the definitions which published bundles have one. They know it at once; the newest they may examine for minutes, so the store
 * is not locked meanwhile: only the change that has caused it waits.
 */
export interface Announcement {
  /** Called when the bundles may have changed. */
  stale(): void
  /**
   * The definitions know what was published before the call when it returns, and have examined it when the promise resolves. It never
   * fails.
   */
  announce(): Promise<void>
  /** Whether the definitions were told once. */
  isMade(): boolean
}

export function createAnnouncement({ folder, bundles, definitions, log }: AnnouncementOptions): Announcement {
  let isStale = false
  let isMade = false
  let last: Promise<void> = Promise.resolve()

  async function tell(known: readonly IndexedBundle[]): Promise<void> {
    try {
      await definitions?.bundlesChanged(
        // A damaged blob is no reason to take a definition away: it was examined when the bundle was published.
        known.flatMap(({ definition, uid, name, publication }) =>
          definition
            ? {
                ...{ bundleUid: uid, name, publishedAt: publication },
                file: join(folder.blobs, hexOf(definition.digest)),
                sizeBytes: definition.sizeBytes,
              }
            : [],
        ),
      )
    } catch (error) {
      log.error({ err: error }, 'the definition of the newest bundle could not be taken over')
    }
  }

  return {
    stale: () => void (isStale = true),
    announce() {
      const known = bundles()
      if (isStale && known) {
        isStale = false
        isMade = true
        const before = last
        const now = tell(known)
        last = before.then(() => now)
      }
      return last
    },
    isMade: () => isMade,
  }
}
