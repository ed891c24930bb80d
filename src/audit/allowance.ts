/** What may happen seldom: so often at once, and then once in a while. */
export interface Allowance {
  /** Milliseconds until it may happen; 0 for now. */
  waitMs(): number
  /** It happens. */
  take(): void
}

/**
 * @param atOnce how often without a pause
 * @param everyMs how often in the long run: once in this time
 * @param monotonic milliseconds
 */
export function createAllowance(atOnce: number, everyMs: number, monotonic: () => number): Allowance {
  // When all of it is there again.
  let fullAt = 0
  return {
    waitMs: () => Math.max(0, fullAt - (atOnce - 1) * everyMs - monotonic()),
    take() {
      fullAt = Math.max(fullAt, monotonic()) + everyMs
    },
  }
}
