/** Wall clock and monotonic clock, handed in so that tests can turn the hands. */
export interface Clock {
  /** Milliseconds since 1970, UTC; may jump. */
  now(): number
  /** Milliseconds since some start; never jumps. For delays and locks. */
  monotonic(): number
}

/** The clocks of this machine. */
export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() }
