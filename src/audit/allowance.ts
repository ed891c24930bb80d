/** A rate limit with a burst. */
export interface Allowance {
  /** Milliseconds until the next one is allowed; 0 if it is allowed now. */
  waitMs(): number
  /** Counts one. */
  take(): void
}

/**
 * Creates the limit.
 * @param atOnce size of the burst
 * @param everyMs average interval in the long run
 * @param monotonic milliseconds
 */
export function createAllowance(atOnce: number, everyMs: number, monotonic: () => number): Allowance {
  // When the full burst is available again.
  let fullAt = 0
  return {
    waitMs: () => Math.max(0, fullAt - (atOnce - 1) * everyMs - monotonic()),
    take() {
      fullAt = Math.max(fullAt, monotonic()) + everyMs
    },
  }
}
