import { createGrowingBuffer } from '../base/growing-buffer.ts'
import {
  KubernetesError,
  type KubernetesObject,
  type Resource,
  type WatchedObjects,
  type WatchOptions,
} from './client.ts'
import { isRecord, parseExactJson, parseJson } from '../base/json.ts'
import { isObject, withoutManagers } from './fields.ts'
import { refusal, type Requests } from './request.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { keepAll, listAll, type ListLimits } from './lists.ts'
import { collectionPath, metadataType, selectors } from './paths.ts'

/** A line of a watch. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'
  /** Of a bookmark only its resource version means something. */
  readonly object: KubernetesObject
  /** The watch continues from here. */
  readonly resourceVersion: string
}

// etcd takes 1.5 MiB for an object; its JSON is larger where Kubernetes stores it in another form.
const longestLine = 8 * 1024 * 1024
const lineEnd = 0x0a

/**
 * Reads the lines of a watch, all lines of a chunk together.
 * @throws KubernetesError that an event of the type ERROR reports, also of a line that has no end or is not understood
 */
export async function* readWatchEvents(
  chunks: AsyncIterable<unknown>,
  longest = longestLine,
): AsyncGenerator<readonly WatchEvent[]> {
  const rest = createGrowingBuffer(longest)
  const keep = (piece: Buffer) => {
    if (!rest.add(piece))
      throw new KubernetesError(200, 'TooLarge', `a line of a watch has more than ${longest} bytes`)
  }
  for await (const chunk of chunks as AsyncIterable<Buffer>) {
    const events: WatchEvent[] = []
    let from = 0
    for (let end = chunk.indexOf(lineEnd); end >= 0; end = chunk.indexOf(lineEnd, from)) {
      keep(chunk.subarray(from, end))
      from = end + 1
      const line = rest.bytes().toString()
      rest.clear()
      try {
        if (line.trim() !== '') events.push(parseEvent(line))
      } catch (error) {
        if (events.length > 0) yield events
        throw error
      }
    }
    keep(chunk.subarray(from))
    yield events
  }
}

function parseEvent(line: string): WatchEvent {
  const event = parseJson(line, parseExactJson)
  const { type, object } = isRecord(event) ? event : {}
  if (type === 'ERROR') throw refusal(500, object)
  const isKnown = type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED' || type === 'BOOKMARK'
  // A bookmark has no name.
  const named = isRecord(object) && type === 'BOOKMARK' ? withName(object) : object
  const resourceVersion = isObject(named) ? named.metadata.resourceVersion : undefined
  if (!isKnown || !isObject(named) || resourceVersion === undefined)
    throw new KubernetesError(200, 'InvalidReply', 'an event of a watch is not understood')
  return { type, object: withoutManagers(named), resourceVersion }
}

const withName = (object: Readonly<Record<string, unknown>>) => ({
  ...object,
  metadata: { name: '', ...(isRecord(object.metadata) ? object.metadata : {}) },
})

export interface WatchTiming {
  /** Before the second try; it doubles with each failure. */
  readonly firstPauseMs: number
  readonly longestPauseMs: number
  /** A watch that lasted this long is no failure, however it ended. */
  readonly wellAfterMs: number
  /** After this time the API server ends a watch, in seconds. */
  readonly watchSeconds: number
  /** A watch without a byte for this long is restarted; bookmarks come about once a minute. */
  readonly silenceMs: number
}

const watchTiming: WatchTiming = {
  firstPauseMs: 800,
  longestPauseMs: 30_000,
  wellAfterMs: 5_000,
  watchSeconds: 600,
  silenceMs: 200_000,
}

interface WatchParts {
  readonly requests: Requests
  readonly timing?: WatchTiming | undefined
  readonly limits?: ListLimits | undefined
}

/**
 * Keeps a picture of all objects of a resource. A watch that ends continues where it was; after a lasting refusal it begins with a new
 * list.
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
  /** Resource version to continue from; undefined: a list is needed. */
  let version: string | undefined
  /** Start of the running watch. */
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
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: from,
      timeoutSeconds: String(Math.round(watchSeconds * (1 + Math.random() / 2))),
    })
    const path = `${collectionPath(resource, namespace)}?${query.toString()}`
    try {
      const either = AbortSignal.any([silent.signal, signal])
      const reply = await requests.open({
        method: 'GET',
        path,
        isLong: true,
        signal: either,
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
      // Clients that a restart of the API server cuts off do not all come back at once.
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
