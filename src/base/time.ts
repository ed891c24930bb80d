// RFC 3339, section 5.6. Date.parse alone accepts other formats too.
const timestamp = /^(\d{4}-\d\d-\d\d)T(?!24)\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i

/**
 * Parses an RFC 3339 time to milliseconds since 1970; undefined for text that is not a valid time, or that its time zone puts beyond the years
 * 0000 to 9999, where RFC 3339 has no text for it.
 */
export function parseTime(text: string): number | undefined {
  const day = timestamp.exec(text)?.[1]
  if (day === undefined) return undefined
  const time = Date.parse(text.toUpperCase())
  // Date.parse reads the 30th of February as the 2nd of March.
  const midnight = Date.parse(`${day}T00:00:00Z`)
  const isMoment = !Number.isNaN(time) && formatTime(midnight).startsWith(day)
  return isMoment && timestamp.test(formatTime(time)) ? time : undefined
}

/** Milliseconds since 1970 as RFC 3339 in UTC. */
export const formatTime = (ms: number): string => new Date(ms).toISOString()

/** The same to the second and without punctuation, for names of files: `20260131T080000Z`. */
export const timeInName = (ms: number): string => formatTime(ms).replace(/[-:]|\.\d+/g, '')

/**
 * Tolerated setback of the clock, milliseconds; beyond it, anything made at a later time than now is over: small corrections by NTP end
 * nothing, and a clock that is set back by years does not add them to a lifetime.
 */
export const setBackMs = 300_000

/** Whether a token with these claims of RFC 7519, in seconds, is valid, and not from a time that is yet to come. @param now milliseconds since 1970 */
export const isValidAt = (
  now: number,
  { iat, exp }: { readonly iat: number; readonly exp: number },
): boolean => exp * 1_000 > now && iat * 1_000 - setBackMs <= now

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** An age or another duration in its two largest units, as kubectl shows it: `3d4h`, `5m`, `12s`. @param ms a clock that was set may make it negative */
export function shortDuration(ms: number): string {
  let left = Math.max(0, ms)
  const parts = units.map(([unit, length]) => {
    const count = Math.floor(left / length)
    left -= count * length
    return { unit, count }
  })
  const first = parts.findIndex(({ count }) => count > 0)
  if (first < 0) return '0s'
  return parts
    .slice(first, first + 2)
    .filter(({ count }) => count > 0)
    .map(({ unit, count }) => `${count}${unit}`)
    .join('')
}
