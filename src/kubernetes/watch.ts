import { setTimeout as sleep } from 'node:timers/promises'
import {
  KubernetesError,
  type KubernetesObject,
  type Resource,
  type WatchedObjects,
  type WatchOptions,
} from './client.ts'
import { keepAll, listAll, type ListLimits } from './lists.ts'
import { collectionPath, metadataType, selectors } from './paths.ts'
import type { Requests } from './request.ts'
import { readWatchEvents } from './watch-events.ts'

export interface WatchTiming {
  /** Before the second try; it doubles with each failure. */
  readonly firstPauseMs: number
  readonly longestPauseMs: number
  /** A watch that lasted this long is no failure, however it ended. */
  readonly wellAfterMs: number
  /** After this time the API server ends a watch, in seconds. */
  readonly watchSeconds: number
  /** A watch without a byte for this long is begun anew; bookmarks come about once a minute. */
  readonly silenceMs: number
}

const watchTiming: WatchTiming = {
  ...{ firstPauseMs: 800, longestPauseMs: 30_000, wellAfterMs: 5_000 },
  ...{ watchSeconds: 600, silenceMs: 200_000 },
}

export interface WatchParts {
  readonly requests: Requests
  readonly timing?: WatchTiming | undefined
  readonly limits?: ListLimits | undefined
}

/**
 * Keeps a picture of all objects of a resource. A watch that ends continues where it was; what the API server refuses for more than a moment
 * begins with a new list.
 */
export function watchObjects(
  { requests, timing = watchTiming, limits }: WatchParts,
  resource: Resource,
  options: WatchOptions,
): WatchedObjects {
  const { namespace, pick = keepAll, watchSeconds = timing.watchSeconds, onChange, signal } = options
  let objects: Map<string, KubernetesObject> | undefined
  /** The picture as it was last asked for. */
  let shown: readonly KubernetesObject[] | undefined
  let problem: string | undefined
  /** Where the watch continues; undefined where a list is needed. */
  let version: string | undefined
  /** When the API server accepted the running watch. */
  let openedAt = Infinity

  function changed(): void {
    shown = undefined
    onChange()
  }

  async function list(): Promise<string> {
    const { objects: listed, resourceVersion } = await listAll(
      requests,
      resource,
      { ...options, signal },
      limits,
    )
    objects = new Map(listed.map((object) => [keyOf(object), object]))
    changed()
    return resourceVersion
  }

  /** Follows the changes until the API server ends the reply. */
  async function follow(from: string, picture: Map<string, KubernetesObject>): Promise<void> {
    const silent = new AbortController()
    const watchdog = setTimeout(() => silent.abort(), timing.silenceMs)
    const query = new URLSearchParams({
      ...selectors(options),
      ...{ watch: '1', allowWatchBookmarks: 'true', resourceVersion: from },
      timeoutSeconds: String(Math.round(watchSeconds * (1 + Math.random() / 2))),
    })
    const path = `${collectionPath(resource, namespace)}?${query.toString()}`
    try {
      const either = AbortSignal.any([silent.signal, signal])
      const reply = await requests.open({
        ...{ method: 'GET', path, isLong: true, signal: either },
        ...metadataType(options, 'watch'),
      })
      problem = undefined
      openedAt = performance.now()
      for await (const events of readWatchEvents(reply)) {
        watchdog.refresh()
        let isChanged = false
        for (const { type, object, resourceVersion } of events) {
          version = resourceVersion
          if (type === 'DELETED') picture.delete(keyOf(object))
          else if (type !== 'BOOKMARK') picture.set(keyOf(object), pick(object))
          isChanged ||= type !== 'BOOKMARK'
        }
        if (isChanged) changed()
      }
    } catch (error) {
      if (silent.signal.aborted)
        throw new KubernetesError(0, 'Timeout', 'the API server has been silent for too long')
      throw requests.explain(error, signal)
    } finally {
      clearTimeout(watchdog)
    }
  }

  async function run(): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      openedAt = Infinity
      try {
        version ??= await list()
        if (objects !== undefined) await follow(version, objects)
      } catch (error) {
        problem = (error as Error).message
        if (!isPassing(error)) version = undefined
      }
      failures = performance.now() - openedAt >= timing.wellAfterMs ? 0 : failures + 1
      const pauseMs = Math.min(timing.firstPauseMs * 2 ** failures, timing.longestPauseMs)
      // Those whom a restart of the API server cuts off do not all come back at the same moment.
      await sleep(pauseMs * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => undefined)
    }
  }

  void run()
  return {
    current: () => (shown ??= objects && [...objects.values()]),
    problem: () => problem,
  }
}

const keyOf = ({ metadata }: KubernetesObject): string => `${metadata.namespace ?? ''}/${metadata.name}`

/** Whether a failure says nothing about the state that a watch continues from: the network, a certificate, a busy API server. */
const isPassing = (error: unknown): boolean =>
  error instanceof KubernetesError && [0, 401, 403, 429, 500, 502, 503].includes(error.status)
