import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Lock } from '../../base/lock.ts'
import type { ContentAccess } from '../../content/store/find.ts'
import { clearLeftovers } from '../../store/leftovers.ts'
import type { Logger } from '../../system/log.ts'
import { isDeleting, type ClusterRecord, type ClusterStore } from '../cluster-store.ts'
import { pinHolder } from './acceptance.ts'
import type { Revision } from './revisions.ts'
import type { RevisionStore } from './revisions.ts'

export interface FileSyncOptions {
  readonly store: Pick<ClusterStore, 'current'>
  readonly revisions: RevisionStore
  readonly content: Pick<ContentAccess, 'renewPins'>
  /** Writes the stored copy of the active revision beside the files of the cluster, unless it is there. */
  readonly followCopy: (record: ClusterRecord) => Promise<void>
  /** Generations to which a copy of Kubernetes can go back. */
  readonly copies: () => Promise<readonly number[]>
  /** Whether the database is known to have every row: otherwise nothing is released. */
  readonly isComplete: () => boolean
  readonly inTurn: Lock
  readonly log: Logger
}

/**
 * Syncs the files of a cluster with its revisions: the pins of its content, as after a loss of `pins.json`; the stored copy of the active
 * revision; the folders of revisions. Removes leftovers of a killed daemon for a cluster which was not accepted.
 */
export interface FileSync {
  /** Never fails: a failed part is done by the next run. */
  run(): Promise<void>
}

const mostRevisions = 10
// The running one, and the one that a rollback goes back to: many writes in a row leave more than the newest ten behind.
const mostGood = 2

export function createFileSync(options: FileSyncOptions): FileSync {
  const { store, revisions, content, followCopy, copies, isComplete, inTurn, log } = options

  async function retain(record: ClusterRecord): Promise<void> {
    const all = revisions.list()
    const kept = new Set([
      ...all.slice(0, mostRevisions).map(({ generation }) => generation),
      ...all
        .filter(({ outcome }) => outcome === 'good')
        .slice(0, mostGood)
        .map(({ generation }) => generation),
      ...[record.generation, record.goodGeneration],
      ...(await copies()),
    ])
    const folder = dirname(record.folder)
    for (const { generation } of all) {
      if (kept.has(generation)) continue
      await rm(join(folder, String(generation)), { recursive: true, force: true })
      revisions.remove(generation)
    }
    // Folders that no row names.
    await clearLeftovers({
      folder,
      completeUntil: isComplete() ? Infinity : -Infinity,
      log,
      isLeftover: (name) => /^\d+(\.tmp)?$/.test(name) && !kept.has(Number(name)),
    })
  }

  const attempt = (work: () => Promise<void>) =>
    work().catch((error: unknown) => {
      log.warn({ err: error }, 'the files of the cluster could not be brought up to date; it is tried again')
    })

  return {
    run: () =>
      inTurn(async () => {
        const record = store.current()
        // The end of a deletion releases all of it.
        if (record && isDeleting(record)) return
        if (record) {
          await attempt(() => followCopy(record))
          await attempt(() => retain(record))
        }
        // A cluster of an early version has not noted its content.
        if (record && !record.summary.content) return
        // The content of a cluster that the database lost stays pinned.
        if (!isComplete()) return
        const needed = record ? neededContent(revisions, record, await copies()) : []
        // A store that cannot be opened says so itself.
        await content.renewPins(pinHolder, needed).catch(() => undefined)
      }),
  }
}

/**
 * Digests of the content of all revisions that may be applied without another write: the active, the good, and the one that waits; and of those
 * of which a copy of Kubernetes is kept.
 * @param copies their generations
 */
export function neededContent(
  revisions: RevisionStore,
  record: ClusterRecord,
  copies: readonly number[],
): readonly string[] {
  const found: readonly (Pick<Revision, 'summary'> | undefined)[] = [
    ...[record, revisions.pending()],
    ...[record.goodGeneration, ...copies].map((generation) => revisions.find(generation)),
  ]
  return [...new Set(found.flatMap((each) => each?.summary.content ?? []))]
}
