import { createBoundedMap } from '../base/bounded-map.ts'

/** Times of failures within a window, with a bounded number of keys and of times per key. */
export interface FailureLog {
  /** Number of failures of the key within the window before `now`, monotonic milliseconds, plus unfinished attempts. */
  count(key: string, now: number): number
  /** When the oldest counted failure leaves the window; one second from now when unfinished attempts alone fill it. */
  nextFreeAt(key: string, now: number): number
  /** Counts the start of an attempt. */
  begin(key: string, now: number): void
  /** Counts the end of an attempt; `failedAt` is kept as a failure. */
  end(key: string, failedAt: number | undefined): void
  /** Restores failures that were stored, the oldest first. */
  restore(key: string, times: readonly number[], now: number): void
  /** Times of failures, the oldest first. */
  times(key: string): readonly number[]
  keys(): string[]
}

interface Entry {
  times: number[]
  pending: number
}

/** @param limits `perKey` is the number of failures above which the count no longer matters */
export function createFailureLog(limits: {
  maximumKeys: number
  perKey: number
  windowMs: number
}): FailureLog {
  const isRecent = (now: number) => (time: number) => time > now - limits.windowMs
  // The key with the fewest failures is replaced, so that a flood of names does not remove the one that matters.
  const entries = createBoundedMap<Entry>({
    maximum: limits.maximumKeys,
    worth: ({ times, pending }, now) => (pending > 0 ? Infinity : times.filter(isRecent(now)).length),
  })

  const recent = (key: string, now: number): readonly number[] => {
    const entry = entries.get(key)
    if (!entry) return []
    entry.times = entry.times.filter(isRecent(now))
    return entry.times
  }

  return {
    count: (key, now) => recent(key, now).length + (entries.get(key)?.pending ?? 0),
    nextFreeAt(key, now) {
      const times = recent(key, now)
      return times.length < limits.perKey || times[0] === undefined ? now + 1_000 : times[0] + limits.windowMs
    },
    begin(key, now) {
      const known = entries.get(key)
      if (known) known.pending += 1
      else entries.set(key, { times: [], pending: 1 }, now)
    },
    end(key, failedAt) {
      const entry = entries.get(key)
      if (!entry) return
      entry.pending -= 1
      if (failedAt !== undefined) {
        recent(key, failedAt)
        entry.times = [...entry.times, failedAt].slice(-limits.perKey)
      }
      if (entry.pending === 0 && entry.times.length === 0) entries.delete(key)
    },
    restore: (key, times, now) => entries.set(key, { times: times.slice(-limits.perKey), pending: 0 }, now),
    times: (key) => entries.get(key)?.times ?? [],
    keys: () => [...entries.entries()].map(([key]) => key),
  }
}
