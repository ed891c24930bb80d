/** Wall clock and monotonic clock, passed as an option so that tests can set them. */
export interface Clock {
  /** Milliseconds since 1970, UTC; may jump. */
  now(): number
  /** Milliseconds since some start; never jumps. For delays and locks. */
  monotonic(): number
}

/** The clocks of this machine. */
export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() }
