import { join } from 'node:path'
import type { Logger } from '../../system/log.ts'
import type { IndexedBundle } from './content-index.ts'
import { hexOf, type ContentFolder } from './folder.ts'

/**
 * The cluster definitions of this host, as the content sees them; the root hands it in, since the content may not use the room
 * `definition`.
 */
export interface ContentDefinitions {
  /**
   * Examines the definition in a bundle before that is published.
   * @param order the archive of the definition, and the bundle that it is in; `publishedAt` as in `PublishedDefinition`
   * @throws AppError why the definition, and with it the bundle, is refused
   */
  examineBundled(order: {
    readonly file: string
    readonly sizeBytes: number
    readonly bundle: { readonly uid: string; readonly name: string; readonly publishedAt: number }
    readonly signal: AbortSignal
  }): Promise<ExaminedDefinition>
  /**
   * Called when the content has been opened, and when its bundles may have changed. The given bundles are known when the call returns.
   * @param bundled all published bundles with a definition, the newest first
   * @returns when the changes were examined
   */
  bundlesChanged(bundled: readonly PublishedDefinition[]): Promise<void>
}

/** A definition of a bundle that is not published yet. */
interface ExaminedDefinition {
  /** Puts it into its slot. */
  place(): Promise<void>
  /** Removes the files of the examination, unless they are in a slot. */
  discard(): Promise<void>
}

/** The definition of a published bundle. */
export interface PublishedDefinition {
  readonly bundleUid: string
  /** Name of the bundle. */
  readonly name: string
  /** Milliseconds since 1970, UTC; more than of all bundles that were published before. */
  readonly publishedAt: number
  /** The blob; missing while it is damaged. */
  readonly file: string
  readonly sizeBytes: number
}

interface AnnouncementOptions {
  readonly folder: ContentFolder
  /** Published bundles, the newest first; undefined while the store is not open. */
  readonly bundles: () => readonly IndexedBundle[] | undefined
  readonly definitions: ContentDefinitions | undefined
  readonly log: Logger
}

/**
 * Reports to the definitions the published bundles that have one. They know it at once; the newest they may examine for minutes, so the store
 * is not locked meanwhile: only the change that has caused it waits.
 */
interface Announcement {
  /** Called when the bundles may have changed. */
  stale(): void
  /**
   * The definitions know the bundles published before the call when it returns, and have examined them when the promise resolves. It never
   * fails.
   */
  announce(): Promise<void>
  /** Whether the definitions were notified once. */
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
                bundleUid: uid,
                name,
                publishedAt: publication,
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
