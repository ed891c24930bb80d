import { createHash } from 'node:crypto'
import type { KubernetesClient, KubernetesObject, WatchedObjects } from '../../../kubernetes/client.ts'
import type { InventoryEntry } from '../../../kubernetes/inventory.ts'

/** Objects whose changes are watched, and how they are selected. */
export interface WatchedKind {
  readonly apiVersion: string
  readonly kind: string
  /** Empty for all objects of the kind. */
  readonly labelSelector: string
}

/** Watches the metadata of objects: a watch for each kind and selector. */
export interface MetadataWatch {
  /** Says which kinds are watched; the others end. @throws KubernetesError where the API server does not name a kind */
  watch(kinds: readonly WatchedKind[], signal: AbortSignal): Promise<void>
  /**
   * Mark of an object of a watched kind: another one when the object may have been changed. Empty where it is missing.
   * @returns undefined where that is not known yet
   */
  markOf(kind: WatchedKind, entry: InventoryEntry): string | undefined
  stop(): void
}

export interface MetadataWatchOptions {
  readonly client: Pick<KubernetesClient, 'resourceOf' | 'watch'>
  readonly onChange: () => void
}

// The API server ends a watch after half as long again at most; each end costs a request.
const watchSeconds = 3_600

export function createMetadataWatch({ client, onChange }: MetadataWatchOptions): MetadataWatch {
  interface Watched {
    readonly objects: WatchedObjects
    readonly end: AbortController
    /** What was made of the last picture. */
    picture?: readonly KubernetesObject[] | undefined
    marks?: ReadonlyMap<string, string>
  }
  const all = new Map<string, Watched>()
  const nameOfKind = ({ apiVersion, kind, labelSelector }: WatchedKind) =>
    `${apiVersion} ${kind} ${labelSelector}`
  let isStopped = 0

  return {
    async watch(kinds, signal) {
      const wanted = new Map(kinds.map((each) => [nameOfKind(each), each]))
      for (const [name, { end }] of all)
        if (!wanted.has(name)) {
          end.abort()
          all.delete(name)
        }
      const before = isStopped
      for (const [name, { apiVersion, kind, labelSelector }] of wanted) {
        if (all.has(name)) continue
        const resource = await client.resourceOf(apiVersion, kind, signal)
        if (isStopped !== before) return
        if (!resource || all.has(name)) continue
        const end = new AbortController()
        const objects = client.watch(resource, {
          ...(labelSelector === '' ? {} : { labelSelector }),
          ...{ isMetadataOnly: true, watchSeconds, pick: keepMark, onChange, signal: end.signal },
        })
        all.set(name, { objects, end })
      }
    },
    markOf(kind, entry) {
      const watched = all.get(nameOfKind(kind))
      const picture = watched?.objects.current()
      if (!watched || !picture) return undefined
      if (watched.picture !== picture) {
        watched.picture = picture
        watched.marks = new Map(
          picture.map(({ metadata: { name, namespace }, mark }) => [
            `${namespace ?? ''}/${name}`,
            String(mark),
          ]),
        )
      }
      return watched.marks?.get(`${entry.namespace ?? ''}/${entry.name}`) ?? ''
    },
    stop() {
      isStopped += 1
      for (const { end } of all.values()) end.abort()
      all.clear()
    },
  }
}

/**
 * Of objects with a generation, which rises with each change of what is wanted, changes of the status make no difference; of the others
 * each change does.
 */
function keepMark({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject {
  const { name, namespace, generation, labels, annotations, resourceVersion = '' } = metadata
  const about = JSON.stringify([generation, labels, annotations, metadata.deletionTimestamp])
  const mark =
    generation === undefined ? resourceVersion : createHash('sha256').update(about).digest('base64')
  return {
    ...{ apiVersion, kind, mark },
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
  }
}
