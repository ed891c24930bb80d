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
