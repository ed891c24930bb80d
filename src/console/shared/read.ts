import { signal, type ReadonlySignal } from '@preact/signals'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { onTold, pauseOf } from './changes.ts'
import { get, isReachable, RequestError } from './request.ts'

/** What was last read of a path. */
export interface Reading<Body> {
  readonly body?: Body
  /** Of the last try; what was read before stays. */
  readonly error?: RequestError
  readonly again: () => void
}

/**
 * Reads a path now, when the stream tells of it, otherwise every `everyMs` while the page is seen, at once when it is seen again, and when the host
 * answers again.
 * @param path undefined reads nothing
 */
export function useReading<Body>(path: string | undefined, everyMs: number): Reading<Body> {
  const state = useMemo(() => signal<Reading<Body>>({ again: () => undefined }), [path])
  useEffect(() => (path === undefined ? undefined : readOnAndOn(path, everyMs, state)), [path])
  return (state as ReadonlySignal<Reading<Body>>).value
}

function readOnAndOn<Body>(path: string, everyMs: number, state: { value: Reading<Body> }): () => void {
  const stop = new AbortController()
  const isOver = () => stop.signal.aborted
  let timer: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  let isReading = false
  /** The stream has told of a change while it was read. */
  let isStale = false

  async function read(): Promise<void> {
    clearTimeout(timer)
    if (isOver() || isReading) return
    isReading = true
    try {
      state.value = { body: await get<Body>(path, { signal: stop.signal }), again }
      failures = 0
    } catch (error) {
      if (isOver()) return
      if (!(error instanceof RequestError)) throw error
      failures += 1
      // What is not there any more is not shown.
      state.value = error.status === 404 ? { error, again } : { ...state.value, error, again }
    } finally {
      isReading = false
    }
    if (document.hidden || isOver()) return
    if (isStale) {
      isStale = false
      return read()
    }
    timer = setTimeout(
      () => void read(),
      failures > 0 ? Math.min(2_000 * failures, 15_000) : pauseOf(path, everyMs),
    )
  }
  const again = () => void read()
  const onSeen = () => {
    if (document.hidden) clearTimeout(timer)
    else void read()
  }
  const unsubscribe = isReachable.subscribe((is) => {
    if (is && failures > 0) void read()
  })
  const endTold = onTold(path, () => {
    if (isReading) isStale = true
    else if (!document.hidden) void read()
  })
  document.addEventListener('visibilitychange', onSeen)
  void read()
  return () => {
    stop.abort()
    clearTimeout(timer)
    unsubscribe()
    endTold()
    document.removeEventListener('visibilitychange', onSeen)
  }
}

/**
 * What the host has found for exactly this request. Where the request has become another one, also while it was checked, nothing has been found.
 * @param request a value for JSON
 */
export function useFound<Found>(request: unknown): readonly [Found | undefined, (found: Found) => void] {
  const asked = JSON.stringify(request)
  const [held, setHeld] = useState<{ readonly asked: string; readonly found: Found }>()
  return [held?.asked === asked ? held.found : undefined, (found) => setHeld({ asked, found })]
}

/** A page of a list of the API. */
interface ListReply<Item> {
  readonly items: readonly Item[]
  readonly listmeta?: { readonly continue: string; readonly count: number; readonly offset?: number }
}

/** What was read of a list. */
export interface ListReading<Item> extends Reading<ListReply<Item>> {
  readonly items: readonly Item[]
  /** Items that are not read yet. */
  readonly left: number
  /** Reads the next page; absent at the end. */
  readonly more: (() => Promise<void>) | undefined
}

const pageOf = (path: string, token: string) =>
  token === '' ? path : `${path}${path.includes('?') ? '&' : '?'}continue=${encodeURIComponent(token)}`

/** Reads the first page of a list as `useReading` does, and further ones when they are asked for. The host counts, filters and orders. */
export function useList<Item>(path: string, everyMs: number): ListReading<Item> {
  const reading = useReading<ListReply<Item>>(path, everyMs)
  const later = useMemo(() => signal<readonly ListReply<Item>[]>([]), [path])
  const pages = [...(reading.body ? [reading.body] : []), ...later.value]
  const items = pages.flatMap((page) => page.items)
  const { continue: token = '', count = 0 } = pages.at(-1)?.listmeta ?? {}
  async function more() {
    const page = await get<ListReply<Item>>(pageOf(path, token))
    later.value = [...later.value, page]
  }
  return {
    ...reading,
    items,
    left: Math.max(0, count - items.length),
    more: token === '' ? undefined : more,
  }
}

/** The page of a list that is shown. */
export interface PagedReading<Item> extends Reading<ListReply<Item>> {
  readonly items: readonly Item[]
  /** Number of the first shown item, from 1, and of the last one. */
  readonly first: number
  readonly last: number
  /** Items of all pages. */
  readonly count: number
  readonly previous: (() => void) | undefined
  readonly next: (() => void) | undefined
}

/** Reads one page of a long list on and on, so that only what is shown is read; the server counts, filters and orders. */
export function usePages<Item>(path: string | undefined, everyMs: number): PagedReading<Item> {
  const [at, setAt] = useState<{ path: string | undefined; tokens: readonly string[] }>({ path, tokens: [] })
  // Another filter begins with its first page.
  const tokens = at.path === path ? at.tokens : []
  const reading = useReading<ListReply<Item>>(
    path === undefined ? undefined : pageOf(path, tokens.at(-1) ?? ''),
    everyMs,
  )
  const { items = [], listmeta } = reading.body ?? {}
  const { continue: token = '', count = items.length, offset: last = items.length } = listmeta ?? {}
  const go = (to: readonly string[]) => () => setAt({ path, tokens: to })
  return {
    ...reading,
    items,
    count,
    last,
    first: last - items.length + 1,
    previous: tokens.length === 0 ? undefined : go(tokens.slice(0, -1)),
    next: token === '' ? undefined : go([...tokens, token]),
  }
}

/** Items that are drawn at once, as many as a page of the API has. */
export const drawnItems = 50

/** Shows a list that came whole with something else by pages. */
export function usePartsOf<Item>(all: readonly Item[]): PagedReading<Item> {
  const [wanted, setFrom] = useState(0)
  // It may have become shorter.
  const from = Math.min(wanted, Math.floor(Math.max(0, all.length - 1) / drawnItems) * drawnItems)
  const items = all.slice(from, from + drawnItems)
  const last = from + items.length
  return {
    body: { items },
    again: () => undefined,
    items,
    count: all.length,
    first: from + 1,
    last,
    previous: from === 0 ? undefined : () => setFrom(from - drawnItems),
    next: last === all.length ? undefined : () => setFrom(last),
  }
}
