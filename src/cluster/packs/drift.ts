import type { Clock } from '../../system/clock.ts'
import { createHash } from 'node:crypto'
import type { KubernetesClient, KubernetesObject, WatchedObjects } from '../../kubernetes/client.ts'
import { type InventoryEntry, keyOf, prepared, nameOf } from '../../kubernetes/inventory.ts'
import { join } from 'node:path'
import { groupKindOf } from '../../kubernetes/paths.ts'
import type { DesiredState, DesiredChart, DesiredPack } from '../desired/desired-state.ts'
import { contentOf, namespacesOf, readObjects, withNamespaceLabels } from './objects.ts'
import type { PackRecord } from './pack-store.ts'
import { releaseFiles } from './pack-steps.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { isPassing, rankOf } from '../../kubernetes/work-off.ts'
import type { Logger } from '../../system/log.ts'
import type { NewClusterEvent } from '../events/event-log.ts'
import { putRight } from './put-right.ts'

/** Decides when an object is observed again, and whether a correction is emitted. */
interface Pace {
  /** Notes a correction. @returns the form of its event: none while an emitted fight lasts */
  corrected(key: string): 'correction' | 'fight' | undefined
  /** Monotonic time before which an object is not observed again; 0 for most. */
  restsUntil(key: string): number
  forget(): void
}

/** Number of corrections in a row that are emitted; the next one is a fight. */
const emittedCorrections = 3
const quietMs = 600_000
const firstRestMs = 10_000
const longestRestMs = 3_600_000

/**
 * An object that is changed again and again is in a fight with another controller, which putting it right does not end: it is put right
 * less and less often. The first corrections come at once, since a person may try twice.
 */
export function createPace(clock: Pick<Clock, 'monotonic'>): Pace {
  const fights = new Map<string, { count: number; at: number; restMs: number }>()
  return {
    corrected(key) {
      const now = clock.monotonic()
      const before = fights.get(key)
      const isFight = before !== undefined && now - before.at <= quietMs + 2 * before.restMs
      const count = isFight ? before.count + 1 : 1
      const restMs =
        count < 2 ? 0 : Math.min(firstRestMs * 2 ** Math.max(count - emittedCorrections, 0), longestRestMs)
      fights.set(key, { count, at: now, restMs })
      if (count <= emittedCorrections) return 'correction'
      return count === emittedCorrections + 1 ? 'fight' : undefined
    },
    restsUntil(key) {
      const fight = fights.get(key)
      return fight ? fight.at + fight.restMs : 0
    },
    forget: () => fights.clear(),
  }
}

/** Watched objects, and their selector. */
interface WatchedKind {
  readonly apiVersion: string
  readonly kind: string
  /** Empty for all objects of the kind. */
  readonly labelSelector: string
}

/** Watches the metadata of objects: a watch for each kind and selector. */
interface MetadataWatch {
  /** Sets the watched kinds; the others end. @throws KubernetesError where the API server does not name a kind */
  watch(kinds: readonly WatchedKind[], signal: AbortSignal): Promise<void>
  /**
   * Mark of an object of a watched kind: another one when the object may have been changed. Empty where it is missing.
   * @returns undefined where that is not known yet
   */
  markOf(kind: WatchedKind, entry: InventoryEntry): string | undefined
  stop(): void
}

interface MetadataWatchOptions {
  readonly client: Pick<KubernetesClient, 'resourceOf' | 'watch'>
  readonly onChange: () => void
}

// The API server ends a watch after half as long again at most; each end costs a request.
const watchSeconds = 3_600

function createMetadataWatch({ client, onChange }: MetadataWatchOptions): MetadataWatch {
  interface Watched {
    readonly objects: WatchedObjects
    readonly end: AbortController
    /** The picture behind `marks`. */
    picture?: readonly KubernetesObject[] | undefined
    marks?: ReadonlyMap<string, string>
  }
  const all = new Map<string, Watched>()
  const nameOfKind = ({ apiVersion, kind, labelSelector }: WatchedKind) =>
    `${apiVersion} ${kind} ${labelSelector}`
  let isStopped = 0

  return {
    async watch(kinds, signal) {
      const desired = new Map(kinds.map((each) => [nameOfKind(each), each]))
      for (const [name, { end }] of all)
        if (!desired.has(name)) {
          end.abort()
          all.delete(name)
        }
      const before = isStopped
      for (const [name, { apiVersion, kind, labelSelector }] of desired) {
        if (all.has(name)) continue
        const resource = await client.resourceOf(apiVersion, kind, signal)
        if (isStopped !== before) return
        if (!resource || all.has(name)) continue
        const end = new AbortController()
        const objects = client.watch(resource, {
          ...(labelSelector === '' ? {} : { labelSelector }),
          isMetadataOnly: true,
          watchSeconds,
          pick: keepMark,
          onChange,
          signal: end.signal,
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
 * Of objects with a generation, which rises with each change of the spec, changes of the status make no difference; of the others each
 * change does.
 */
function keepMark({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject {
  const { name, namespace, generation, labels, annotations, resourceVersion = '' } = metadata
  const about = JSON.stringify([generation, labels, annotations, metadata.deletionTimestamp])
  const mark =
    generation === undefined ? resourceVersion : createHash('sha256').update(about).digest('base64')
  return {
    apiVersion,
    kind,
    mark,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
  }
}

/** An object that is held in its desired form. */
interface HeldObject {
  readonly entry: InventoryEntry
  readonly pack: DesiredPack
  readonly watched: WatchedKind
}

const ownLabel = 'edgehostd/pack'
// helm gives it to all objects of a release.
const helmLabel = 'app.kubernetes.io/managed-by=Helm'

/** The objects of the packs that are applied and were available, by `keyOf`. Pure. */
function heldObjects(desired: DesiredState, records: readonly PackRecord[]): ReadonlyMap<string, HeldObject> {
  const held = new Map<string, HeldObject>()
  for (const record of records) {
    const pack = desired.packs.find(({ id }) => id === record.id)
    const isDone = record.appliedDigest === pack?.digest && record.availableDigest === pack.digest
    if (!pack || !isDone) continue
    const hold = (entry: InventoryEntry, labelSelector: string) => {
      const { apiVersion, kind } = entry
      // Namespaces of packs that no manifest contains have no label.
      const isNamespace = kind === 'Namespace' && apiVersion === 'v1'
      const watched = { apiVersion, kind, labelSelector: isNamespace ? '' : labelSelector }
      held.set(keyOf(entry), { entry, pack, watched })
    }
    for (const { name } of namespacesOf(desired, pack)) {
      const entry = { apiVersion: 'v1', kind: 'Namespace', name }
      // One that is an object of a manifest is held as that.
      if (!held.has(keyOf(entry))) hold(entry, '')
    }
    for (const entry of record.releases) hold(entry, helmLabel)
    for (const entry of record.inventory) hold(entry, ownLabel)
  }
  return held
}

/**
 * Reads the objects of a pack as they are applied.
 * @returns by the key of an entry; objects of a chart that was not written down are missing
 */
async function readDesiredObjects(
  desired: DesiredState,
  pack: DesiredPack,
): Promise<(entry: InventoryEntry) => KubernetesObject | undefined> {
  const { folder } = desired
  const [namespaces, labels] = [namespacesOf(desired, pack), contentOf(desired).labelledNamespaces]
  const known = new Map<string, KubernetesObject>()
  // Whether a kind has namespaces is known from the entry that is asked for.
  const keep = (object: KubernetesObject, namespace: string) => {
    const about = `${groupKindOf(object)}/${object.metadata.name}`
    known.set(`${about}/${object.metadata.namespace || namespace}`, object)
    known.set(`${about}/`, object)
  }
  for (const { name, labels, annotations } of namespaces)
    keep({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels, annotations } }, '')
  for (const chart of pack.charts)
    for (const object of await readObjects(releaseFiles(folder, chart).wanted).catch(() => []))
      keep(ofRelease(object, chart), chart.namespace)
  for (const { file, namespace } of pack.manifests)
    for (const object of await readObjects(join(folder, file)))
      keep(prepared(withNamespaceLabels(object, labels), undefined, pack.id), namespace)
  return (entry) => {
    const found = known.get(`${groupKindOf(entry)}/${entry.name}/${entry.namespace ?? ''}`)
    if (!found) return undefined
    const { namespace } = entry
    return namespace === undefined ? found : { ...found, metadata: { ...found.metadata, namespace } }
  }
}

/** An object of a chart with what helm adds to it: without that, helm would not take it for its own. */
function ofRelease(object: KubernetesObject, { release, namespace }: DesiredChart): KubernetesObject {
  const { labels, annotations } = object.metadata
  return {
    ...object,
    status: undefined,
    metadata: {
      ...object.metadata,
      labels: { ...labels, 'app.kubernetes.io/managed-by': 'Helm' },
      annotations: {
        ...annotations,
        'meta.helm.sh/release-name': release,
        'meta.helm.sh/release-namespace': namespace,
      },
    },
  }
}

export type DriftEvent = Pick<NewClusterEvent, 'reason' | 'message' | 'object'>

export interface DriftOptions {
  readonly client: KubernetesClient
  readonly onEvent: (event: DriftEvent) => void
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Pick<Logger, 'debug' | 'warn'>
  /** Between two objects, milliseconds, 0 for none: after a start all are observed once. */
  readonly pauseMs?: number
  /** Changes that come together are one, milliseconds. */
  readonly gatherMs?: number
  /** At least between two observations of a present object, milliseconds: some change all the time in fields that are left alone. */
  readonly restMs?: number
}

/** Holds the objects of the packs as they are applied: changes and deletions by hand are put right. */
interface Drift {
  /** Sets the desired state; the objects of packs that are not applied and available yet are left alone. */
  hold(desired: DesiredState, records: readonly PackRecord[], signal: AbortSignal): Promise<void>
  stop(): void
}

const retryMs = 10_000
/** A refusal of the API server, as by a policy that a person has made, may end with that. */
const refusedMs = 600_000
/** After the files of the packs could not be read. */
const brokenMs = 60_000

export function createDrift(options: DriftOptions): Drift {
  const { client, onEvent, clock, log, pauseMs = 100, gatherMs = 1_000, restMs = 20_000 } = options
  const pace = createPace(clock)
  let ended = new AbortController()
  let held: ReadonlyMap<string, HeldObject> = new Map()
  let current: DesiredState | undefined
  /** Generation whose objects were compared first of all; undefined: none. */
  let compared: number | undefined
  /** Mark and time of the last observation of an object; by key. */
  const seen = new Map<string, { readonly mark: string; readonly at: number }>()
  /** Emitted reason why the API server has refused to put an object right; by key. */
  const refusals = new Map<string, string>()
  /** Monotonic times of the next observations of objects. */
  const dueAt = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let working: Promise<void> | undefined
  let gathering: NodeJS.Timeout | undefined

  const watch = createMetadataWatch({
    client,
    onChange: () => void (gathering ??= setTimeout(compare, gatherMs).unref()),
  })

  /** Finds the objects that may have been changed since their observation. */
  function compare(): void {
    clearTimeout(gathering)
    gathering = undefined
    const now = clock.monotonic()
    for (const [key, { entry, watched }] of held) {
      const mark = watch.markOf(watched, entry)
      const last = seen.get(key)
      if (mark === undefined || mark === last?.mark) continue
      const rested = last && mark !== '' ? last.at + restMs : 0
      const at = Math.max(now, pace.restsUntil(key), rested)
      // One that was refused waits for longer.
      dueAt.set(key, Math.min(dueAt.get(key) ?? at, at))
    }
    plan()
  }

  function plan(): void {
    clearTimeout(timer)
    timer = undefined
    if (working || dueAt.size === 0) return
    const next = Math.min(...dueAt.values())
    timer = setTimeout(
      () => {
        const { signal } = ended
        working = work(signal)
          .catch((error: unknown) => {
            if (signal.aborted) return
            log.warn({ err: error }, 'objects of packs cannot be observed; it is tried again in a moment')
            const later = clock.monotonic() + brokenMs
            for (const [key, at] of dueAt) dueAt.set(key, Math.max(at, later))
          })
          .finally(() => {
            working = undefined
            if (!signal.aborted) plan()
          })
      },
      Math.max(next - clock.monotonic(), 0),
    ).unref()
  }

  /** Observes all objects that are due. */
  async function work(signal: AbortSignal): Promise<void> {
    const desired = current
    if (!desired) return
    const now = clock.monotonic()
    const due = [...dueAt].flatMap(([key, at]) => (at <= now ? key : []))
    for (const key of due) if (!held.has(key)) dueAt.delete(key)
    const ranked = [...held]
      .filter(([key]) => due.includes(key))
      .sort(([, one], [, other]) => rankOf(one.entry) - rankOf(other.entry))
    // The objects of a pack are read once, and not kept: most of the time none is needed.
    const read = new Map<string, Awaited<ReturnType<typeof readDesiredObjects>>>()
    for (const [key, each] of ranked) {
      const objectOf = read.get(each.pack.id) ?? (await readDesiredObjects(desired, each.pack))
      read.set(each.pack.id, objectOf)
      signal.throwIfAborted()
      // Another revision may have started meanwhile.
      if (current?.generation !== desired.generation) return
      await observe(key, each, objectOf(each.entry), signal)
      if (pauseMs > 0) await sleep(pauseMs, undefined, { signal })
    }
  }

  async function observe(
    key: string,
    { entry, pack, watched }: HeldObject,
    desired: KubernetesObject | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    dueAt.delete(key)
    const mark = watch.markOf(watched, entry) ?? ''
    seen.set(key, { mark, at: clock.monotonic() })
    if (!desired) return
    try {
      const wrong = await putRight(client, desired, signal)
      // It is there now, and the watch may never see that: where it is deleted once more, its mark is the same. A Job stays missing.
      if (mark === '' && entry.kind !== 'Job') seen.delete(key)
      if (wrong === undefined) return
      refusals.delete(key)
      const emitted = pace.corrected(key)
      if (emitted === undefined) return
      const reason = emitted === 'fight' ? 'ObjectContested' : 'ObjectCorrected'
      onEvent({ reason, message: `${nameOf(entry)}: ${wrong}`, object: { kind: 'pack', name: pack.id } })
    } catch (error) {
      if (signal.aborted) seen.delete(key)
      signal.throwIfAborted()
      log.debug({ err: error, object: nameOf(entry) }, 'an object of a pack could not be put right')
      const isLater = isPassing(error)
      dueAt.set(key, clock.monotonic() + (isLater ? retryMs : refusedMs))
      const { message } = error as Error
      if (isLater || refusals.get(key) === message) return
      refusals.set(key, message)
      onEvent({
        reason: 'ObjectRefused',
        message: `${nameOf(entry)} is not as the pack has it, and cannot be put right: ${message}`,
        object: { kind: 'pack', name: pack.id },
      })
    }
  }

  return {
    async hold(desired, records, signal) {
      const before = current
      current = desired
      if (before && before.generation !== desired.generation) {
        // An object that the old revision puts right may be changed by the new one in the next moment.
        ended.abort()
        ended = new AbortController()
        await working
      }
      held = heldObjects(desired, records)
      for (const known of [seen, refusals])
        for (const key of known.keys()) if (!held.has(key)) known.delete(key)
      const kinds = new Map(
        [...held.values()].map(({ watched }) => [
          `${watched.apiVersion} ${watched.kind} ${watched.labelSelector}`,
          watched,
        ]),
      )
      await watch.watch([...kinds.values()], signal)
      if (compared !== desired.generation || held.size > seen.size) compare()
      compared = desired.generation
    },
    stop() {
      ended.abort()
      ended = new AbortController()
      watch.stop()
      clearTimeout(timer)
      clearTimeout(gathering)
      timer = undefined
      gathering = undefined
      held = new Map()
      current = undefined
      compared = undefined
      seen.clear()
      refusals.clear()
      dueAt.clear()
      pace.forget()
    },
  }
}
