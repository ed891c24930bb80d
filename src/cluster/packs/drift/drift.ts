import { setTimeout as sleep } from 'node:timers/promises'
import { nameOf } from '../../../kubernetes/inventory.ts'
import type { KubernetesClient, KubernetesObject } from '../../../kubernetes/client.ts'
import { isPassing } from '../../../kubernetes/passing.ts'
import { rankOf } from '../../../kubernetes/set-order.ts'
import type { Clock } from '../../../system/clock.ts'
import type { Logger } from '../../../system/log.ts'
import type { NewClusterEvent } from '../../events/event-log.ts'
import type { Wanted } from '../../wanted.ts'
import type { PackRecord } from '../pack-store.ts'
import { createMetadataWatch } from './metadata-watch.ts'
import { createPace } from './pace.ts'
import { putRight } from './put-right.ts'
import { heldObjects, readWantedObjects, type HeldObject } from './wanted-objects.ts'

export type DriftEvent = Pick<NewClusterEvent, 'reason' | 'message' | 'object'>

export interface DriftOptions {
  readonly client: KubernetesClient
  readonly onEvent: (event: DriftEvent) => void
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Pick<Logger, 'debug' | 'warn'>
  /** Between two objects, milliseconds, 0 for none: after a start all are looked at once. */
  readonly pauseMs?: number
  /** Changes that come together are one, milliseconds. */
  readonly gatherMs?: number
  /** At least between two looks at an object that is there, milliseconds: some are changed all the time in what is left alone. */
  readonly restMs?: number
}

/** Holds the objects of the packs as they are applied: what is changed or deleted by hand is put right. */
export interface Drift {
  /** Says what is wanted; the objects of packs that are not applied and available yet are left alone. */
  hold(wanted: Wanted, records: readonly PackRecord[], signal: AbortSignal): Promise<void>
  stop(): void
}

const retryMs = 10_000
/** What the API server refuses, as a policy that a person has made, it may accept when that is gone. */
const refusedMs = 600_000
/** After the files of the packs could not be read. */
const brokenMs = 60_000

export function createDrift(options: DriftOptions): Drift {
  const { client, onEvent, clock, log, pauseMs = 100, gatherMs = 1_000, restMs = 20_000 } = options
  const pace = createPace(clock)
  let ended = new AbortController()
  let held: ReadonlyMap<string, HeldObject> = new Map()
  let current: Wanted | undefined
  /** Generation whose objects were compared first of all; undefined: none. */
  let compared: number | undefined
  /** Mark with which an object was looked at last, and when; by key. */
  const seen = new Map<string, { readonly mark: string; readonly at: number }>()
  /** Why the API server has refused to put an object right, as it was told; by key. */
  const refusals = new Map<string, string>()
  /** Monotonic times at which objects are looked at. */
  const dueAt = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let working: Promise<void> | undefined
  let gathering: NodeJS.Timeout | undefined

  const watch = createMetadataWatch({
    client,
    onChange: () => void (gathering ??= setTimeout(compare, gatherMs).unref()),
  })

  /** Finds the objects that may have been changed since they were looked at. */
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
            log.warn({ err: error }, 'objects of packs cannot be looked at; it is tried again in a moment')
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

  /** Looks at all objects that are due. */
  async function work(signal: AbortSignal): Promise<void> {
    const wanted = current
    if (!wanted) return
    const now = clock.monotonic()
    const due = [...dueAt].flatMap(([key, at]) => (at <= now ? key : []))
    for (const key of due) if (!held.has(key)) dueAt.delete(key)
    const ranked = [...held]
      .filter(([key]) => due.includes(key))
      .sort(([, one], [, other]) => rankOf(one.entry) - rankOf(other.entry))
    // The objects of a pack are read once, and not kept: most of the time none is needed.
    const read = new Map<string, Awaited<ReturnType<typeof readWantedObjects>>>()
    for (const [key, each] of ranked) {
      const objectOf = read.get(each.pack.id) ?? (await readWantedObjects(wanted, each.pack))
      read.set(each.pack.id, objectOf)
      signal.throwIfAborted()
      // Another revision may have begun meanwhile.
      if (current?.generation !== wanted.generation) return
      await look(key, each, objectOf(each.entry), signal)
      if (pauseMs > 0) await sleep(pauseMs, undefined, { signal })
    }
  }

  async function look(
    key: string,
    { entry, pack, watched }: HeldObject,
    wanted: KubernetesObject | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    dueAt.delete(key)
    const mark = watch.markOf(watched, entry) ?? ''
    seen.set(key, { mark, at: clock.monotonic() })
    if (!wanted) return
    try {
      const wrong = await putRight(client, wanted, signal)
      // It is there now, and the watch may never see that: where it is deleted once more, its mark is the same. A Job stays missing.
      if (mark === '' && entry.kind !== 'Job') seen.delete(key)
      if (wrong === undefined) return
      refusals.delete(key)
      const told = pace.corrected(key)
      if (told === undefined) return
      const reason = told === 'fight' ? 'ObjectContested' : 'ObjectCorrected'
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
    async hold(wanted, records, signal) {
      const before = current
      current = wanted
      if (before && before.generation !== wanted.generation) {
        // What is being put right by the old revision may be changed by the new one in the next moment.
        ended.abort()
        ended = new AbortController()
        await working
      }
      held = heldObjects(wanted, records)
      for (const known of [seen, refusals])
        for (const key of known.keys()) if (!held.has(key)) known.delete(key)
      const kinds = new Map(
        [...held.values()].map(({ watched }) => [
          `${watched.apiVersion} ${watched.kind} ${watched.labelSelector}`,
          watched,
        ]),
      )
      await watch.watch([...kinds.values()], signal)
      if (compared !== wanted.generation || held.size > seen.size) compare()
      compared = wanted.generation
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
