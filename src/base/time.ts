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
