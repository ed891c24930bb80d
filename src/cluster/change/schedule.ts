import { refusedField } from '../../errors/refused-field.ts'

const field = 'spec.scheduleAt'
// RFC 3339, 5.6.
const form = /^\d{4}-\d\d-\d\d[Tt ](?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/

/**
 * When a revision is to be begun.
 * @param known the time that GET gives for a revision that waits: it may have come meanwhile
 * @returns milliseconds since 1970; null: at once
 * @throws AppError BadRequest for what is no time of the future
 */
export function parseSchedule(text: string, now: number, known: number | null): number | null {
  if (text === '') return null
  const at = form.test(text) && isDay(text.slice(0, 10)) ? Date.parse(text.replace(' ', 'T')) : NaN
  const refuse = (message: string) => refusedField(field, message)
  if (Number.isNaN(at)) throw refuse('must be a time as RFC 3339 writes it, for example 2031-05-01T02:00:00Z')
  if (at > now) return at
  if (at === known) return null
  throw refuse(
    `must be in the future; the clock of this host says ${new Date(now).toISOString()}. Leave it out to begin at once`,
  )
}

/** Whether the month has the day: `Date.parse` takes the 30th of February for the 2nd of March. */
function isDay(day: string): boolean {
  const at = Date.parse(day)
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(day)
}
