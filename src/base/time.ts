// RFC 3339, section 5.6. Date.parse alone also takes other texts.
const timestamp = /^(\d{4}-\d\d-\d\d)T(?!24)\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i

/** Reads an RFC 3339 time: milliseconds since 1970, or nothing for text that names no moment. */
export function parseTime(text: string): number | undefined {
  const day = timestamp.exec(text)?.[1]
  if (day === undefined) return undefined
  const time = Date.parse(text.toUpperCase())
  // To Date.parse the 30th of February is the 2nd of March.
  const midnight = Date.parse(`${day}T00:00:00Z`)
  const isMoment = !Number.isNaN(time) && new Date(midnight).toISOString().startsWith(day)
  return isMoment ? time : undefined
}
