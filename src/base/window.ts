/** Counts what happened in the time just gone. */
export interface Window {
  /** How much of it there was within the last `lengthMs`. */
  count(): number
  add(): void
}

/**
 * A window that moves with the time; it remembers a number for each event in it, so what is added has to be bounded.
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
