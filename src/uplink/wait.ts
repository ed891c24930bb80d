const firstMs = 1_000
const minuteMs = 60_000
// A platform that asks for more is asked again after this long, since the header may be wrong.
const longestRetryAfterMs = 3_600_000

/**
 * How long to wait after failures in a row: a second, doubled up to a minute, the time between two heartbeats, half of it by chance, so
 * that hosts that lost the platform at once do not come back at once. `Retry-After` is obeyed, up to an hour.
 * @param failures at least 1
 * @param random 0 up to 1
 * @param retryAfter the header, if there was one: seconds
 * @param longestMs where the wait may grow further
 * @returns milliseconds
 */
export function waitAfter(
  failures: number,
  random: number,
  retryAfter?: string,
  longestMs = minuteMs,
): number {
  const grown = Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 20))
  const own = grown / 2 + (grown / 2) * random
  if (retryAfter === undefined || !/^\d{1,9}$/.test(retryAfter)) return own
  const asked = Math.min(longestRetryAfterMs, Number(retryAfter) * 1_000)
  return Math.max(own, asked + firstMs * random)
}
