// The one stream of a page: events, and the states that change with the paths that then answer otherwise. A reading of such a path is made anew when
// the stream says so, and otherwise now and then only. The stream is closed while the page is hidden; each connection begins with all states, so
// what changed meanwhile is read then.
import { signal } from '@preact/signals'
import type { StateMessage } from '../../api/schemas.ts'
import { follow, type StreamState } from './stream.ts'

/** How the stream of this page is. */
export const streamState = signal<StreamState>('connecting')

/** How often what the stream tells is read all the same, should a change not be told. */
const toldMs = 60_000

/** Paths without queries that a connected stream tells of. */
const told = new Set<string>()
const readers = new Map<string, Set<() => void>>()

const withoutQuery = (path: string): string => path.split('?')[0] ?? path

/** Time until the next reading of a path, milliseconds. @param everyMs where no stream tells of it */
export const pauseOf = (path: string, everyMs: number): number =>
  streamState.value === 'live' && told.has(withoutQuery(path)) ? Math.max(everyMs, toldMs) : everyMs

/** Calls a reader when its path may answer otherwise. @returns ends it */
export function onTold(path: string, read: () => void): () => void {
  const key = withoutQuery(path)
  const own = readers.get(key) ?? new Set()
  readers.set(key, own.add(read))
  return () => {
    own.delete(read)
    if (own.size === 0) readers.delete(key)
  }
}

/**
 * Follows a stream of events with states until the signal.
 * @param onEvent the data of each event
 */
export function followChanges(path: string, onEvent: (data: string) => void, signal: AbortSignal): void {
  void follow(path, {
    signal,
    onState(now) {
      streamState.value = now
      if (now !== 'live') told.clear()
    },
    onEvent({ event, data }) {
      if (event === 'message') onEvent(data)
      else note(JSON.parse(data) as StateMessage)
    },
  })
}

function note({ paths }: StateMessage): void {
  for (const path of paths) {
    told.add(path)
    for (const read of readers.get(path) ?? []) read()
  }
}
