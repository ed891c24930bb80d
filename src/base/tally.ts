/** Counts events by kind and reports them together, so that a flood of events produces one log line a minute. */
export interface Tally {
  add(kind: string): void
  /** Reports the remaining events and stops the timer. */
  stop(): void
}

/**
 * The first event is reported at once; later ones are reported together at the end of the interval.
 * @param report gets the number of events of each kind since the last report
 */
export function createTally(report: (counts: Record<string, number>) => void, intervalMs = 60_000): Tally {
  let counts: Record<string, number> = {}
  let timer: NodeJS.Timeout | undefined

  function flush(): boolean {
    if (Object.keys(counts).length === 0) return false
    report(counts)
    counts = {}
    return true
  }

  function tick(): void {
    timer = flush() ? setTimeout(tick, intervalMs).unref() : undefined
  }

  return {
    add(kind) {
      counts[kind] = (counts[kind] ?? 0) + 1
      if (!timer) tick()
    },
    stop() {
      flush()
      clearTimeout(timer)
      timer = undefined
    },
  }
}

/** Counts recent events. */
export interface Window {
  /** The number of events within the last `lengthMs`. */
  count(): number
  add(): void
}

/**
 * A sliding window. It stores a number for each event in it, so the caller must bound the number of events.
 * @param monotonic milliseconds
 */
export function createWindow(lengthMs: number, monotonic: () => number): Window {
  const times: number[] = []
  return {
    count() {
      const since = monotonic() - lengthMs
      const gone = times.findIndex((time) => time > since)
      times.splice(0, gone === -1 ? times.length : gone)
      return times.length
    },
    add: () => void times.push(monotonic()),
  }
}
