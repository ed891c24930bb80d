/** Times of failures within a window, bounded in keys and in times a key. */
export interface FailureLog {
  /** Failures of the key within the window before `now`, monotonic milliseconds, and attempts that have not ended. */
  count(key: string, now: number): number
  /** When the oldest counted failure leaves the window; a second from now when attempts alone fill it. */
  nextFreeAt(key: string, now: number): number
  /** An attempt begins. */
  begin(key: string, now: number): void
  /** It ends; a failure is kept. */
  end(key: string, failedAt: number | undefined): void
  /** Takes up what was kept elsewhere, the oldest first. */
  restore(key: string, times: readonly number[]): void
  /** Times of failures, the oldest first. */
  times(key: string): readonly number[]
  keys(): Iterable<string>
}

interface Entry {
  times: number[]
  pending: number
}

/** @param limits `perKey` is the count from which more is not told apart */
export function createFailureLog(limits: {
  maximumKeys: number
  perKey: number
  windowMs: number
}): FailureLog {
  const entries = new Map<string, Entry>()

  const recent = (key: string, now: number): readonly number[] => {
    const entry = entries.get(key)
    if (!entry) return []
    entry.times = entry.times.filter((time) => time > now - limits.windowMs)
    return entry.times
  }

  // The one with the fewest failures gives way, so that a flood of names does not wash away the one that counts.
  // What left the window counts no more, or the table would fill with it for good.
  function makeRoom(now: number): void {
    let victim: string | undefined
    let fewest = Infinity
    for (const [key, { pending }] of entries) {
      const failures = recent(key, now).length
      if (pending > 0 || failures >= fewest) continue
      victim = key
      fewest = failures
    }
    if (victim !== undefined) entries.delete(victim)
  }

  return {
    count: (key, now) => recent(key, now).length + (entries.get(key)?.pending ?? 0),
    nextFreeAt(key, now) {
      const times = recent(key, now)
      return times.length < limits.perKey || times[0] === undefined ? now + 1_000 : times[0] + limits.windowMs
    },
    begin(key, now) {
      const known = entries.get(key)
      if (known) {
        known.pending += 1
        return
      }
      if (entries.size >= limits.maximumKeys) makeRoom(now)
      entries.set(key, { times: [], pending: 1 })
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
    restore: (key, times) => void entries.set(key, { times: times.slice(-limits.perKey), pending: 0 }),
    times: (key) => entries.get(key)?.times ?? [],
    keys: () => entries.keys(),
  }
}
