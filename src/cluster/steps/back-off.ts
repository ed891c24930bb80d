const firstMs = 10_000
const longestMs = 600_000

/**
 * How long to wait before a failed step is tried again, milliseconds: 10 s, then twice as long each time, up to 10 minutes, with a
 * fifth more or less.
 * @param failures 1 after the first failure
 * @param random 0 to 1
 */
export function backOffMs(failures: number, random: number): number {
  const whole = Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 16))
  return Math.round(whole * (0.8 + 0.4 * random))
}

/**
 * What is left of a wait that was stored before a restart. A clock that was set since, forwards or back, makes it neither longer than it
 * was nor negative.
 * @param begunAt milliseconds since 1970, as is `now`
 */
export function leftOfWaitMs(begunAt: number, waitMs: number, now: number): number {
  return Math.min(waitMs, Math.max(0, begunAt + waitMs - now))
}
