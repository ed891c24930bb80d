import { printable } from '../base/printable.ts'
import { Failure } from './exit-codes.ts'

const days: Readonly<Record<string, number>> = { yesterday: -1, today: 0, tomorrow: 1 }

// Seconds, systemd.time(7), "Parsing Time Spans"; M is a month and m a minute.
const units: readonly (readonly [RegExp, number])[] = [
  [/^(seconds?|sec|s|)$/, 1],
  [/^(minutes?|min|m)$/, 60],
  [/^(hours?|hr|h)$/, 3_600],
  [/^(days?|d)$/, 86_400],
  [/^(weeks?|w)$/, 604_800],
  [/^(months?|M)$/, 30.44 * 86_400],
  [/^(years?|y)$/, 365.25 * 86_400],
]

const pastExamples = '2026-01-31, "2026-01-31 08:00", 2026-01-31T08:00:00Z, yesterday, "2 hours ago" or -2h'
const futureExamples = (year: number) =>
  `${year}-01-31, "${year}-01-31 08:00", ${year}-01-31T08:00:00Z, tomorrow, +30d or +2h`

/**
 * Parses a time in a format of journalctl, systemd.time(7), in the time zone of this machine: a date, a date and a time, a time of
 * today, `now`, `today`, `yesterday`, `tomorrow`, `2 hours ago`, `-2h`, `@` and seconds since 1970; or RFC 3339.
 * @param option name of the option, for the message
 * @param now milliseconds since 1970
 * @param isFuture whether the message has examples of times to come
 * @returns RFC 3339
 * @throws Failure usage
 */
export function parsePointInTime(option: string, text: string, now: number, isFuture = false): string {
  const time = parseMoment(text.trim(), new Date(now))
  if (time === undefined || Number.isNaN(time.getTime()))
    throw new Failure(
      'usage',
      `${option} must be a time, for example ${isFuture ? futureExamples(new Date(now).getFullYear() + 1) : pastExamples}; it is ${printable(text) || 'empty'}`,
    )
  return time.toISOString()
}

function parseMoment(text: string, now: Date): Date | undefined {
  if (text === 'now') return now
  const day = days[text]
  if (day !== undefined) return new Date(now.getFullYear(), now.getMonth(), now.getDate() + day)
  if (/^@\d{1,11}$/.test(text)) return new Date(Number(text.slice(1)) * 1_000)
  const span = /^([-+])(.+)$/.exec(text) ?? /^()(.+) ago$/.exec(text)
  if (span) {
    const seconds = parseSpan(span[2] ?? '')
    return seconds === undefined
      ? undefined
      : new Date(now.getTime() + (span[1] === '+' ? 1 : -1) * seconds * 1_000)
  }
  return parseCalendar(text, now)
}

/** Seconds of a time span such as `2h 30min` or `1 day`. */
function parseSpan(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?\s*[A-Za-z]*\s*)+$/.test(text)) return undefined
  let total = 0
  for (const [, number, name = ''] of text.matchAll(/(\d+(?:\.\d+)?)\s*([A-Za-z]*)/g)) {
    const unit = units.find(([names]) => names.test(name))
    if (!unit) return undefined
    total += Number(number) * unit[1]
  }
  return total
}

const calendar =
  /^(?:(\d{4})-(\d\d)-(\d\d))?(?:(?:^|[ T])(\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?)?( ?(?:UTC|Z)|[+-]\d\d:\d\d)?$/i

function parseCalendar(text: string, now: Date): Date | undefined {
  const match = /^\d/.test(text) ? calendar.exec(text) : null
  if (!match) return undefined
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', zone = ''] = match
  const isUtc = /^ ?(UTC|Z)$/i.test(zone)
  const today = isUtc ? now.toISOString().slice(0, 10) : localDay(now)
  const date = year === undefined ? today : `${year}-${month ?? ''}-${day ?? ''}`
  // Date turns 30 February into 2 March.
  const midnight = new Date(`${date}T00:00:00Z`)
  if (Number.isNaN(midnight.getTime()) || !midnight.toISOString().startsWith(date)) return undefined
  // Without a zone: local time (ECMA-262, Date Time String Format).
  return new Date(`${date}T${hour}:${minute}:${second}${fraction}${isUtc ? 'Z' : zone}`)
}

const two = (value: number) => String(value).padStart(2, '0')
const localDay = (date: Date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
