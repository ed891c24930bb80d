import { join } from 'node:path'
import { createLock } from '../../base/lock.ts'
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
 * Tells the definitions which bundle is the newest with a definition. They may examine it for minutes, so the store is not locked
 * meanwhile: only the change that has caused it waits.
 */
export interface Announcement {
  /** Called when the bundles may have changed. */
  stale(): void
  /** Resolves when the definitions know what was published before the call. It never fails. */
  announce(): Promise<void>
}

export function createAnnouncement({ folder, bundles, definitions, log }: AnnouncementOptions): Announcement {
  const lock = createLock()
  let isStale = false

  async function announceNow(): Promise<void> {
    try {
      const known = bundles()
      if (!isStale || !known) return
      isStale = false
      // A damaged blob is no reason to take the definition away: it was examined when the bundle was published.
      const newest = known.find(({ definition }) => definition)
      await definitions?.bundlesChanged(
        newest?.definition && {
          ...{ bundleUid: newest.uid, name: newest.name, publishedAt: newest.publication },
          file: join(folder.blobs, hexOf(newest.definition.digest)),
          sizeBytes: newest.definition.sizeBytes,
        },
      )
    } catch (error) {
      log.error({ err: error }, 'the definition of the newest bundle could not be taken over')
    }
  }

  return {
    stale: () => void (isStale = true),
    announce: () => lock(announceNow),
  }
}
