import { printable } from '../base/printable.ts'
import { Failure } from './exit-codes.ts'
import { nearestName } from '../base/nearest-name.ts'
import { readBody } from './request-body.ts'
import type { CommandLine } from './command.ts'

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

/** A value for a variable, as the API takes it. */
export interface Given {
  readonly name: string
  readonly profileUid?: string
  readonly value: string
}

/** A profile of a definition, as far as values need it. */
export interface KnownProfile {
  readonly uid: string
  readonly name: string
  readonly variables: readonly { readonly name: string; readonly isSensitive?: boolean }[]
}

/** Values of --set and --set-file. */
interface Settings {
  /** NAME=VALUE or PROFILE/NAME=VALUE. */
  readonly set: readonly string[]
  /** NAME=FILE or PROFILE/NAME=FILE; - is standard input. */
  readonly setFile: readonly string[]
}

type Lists = Pick<CommandLine, 'lists'>

/** Whether a command line has values. */
export const hasValues = ({ lists = {} }: Lists): boolean => (lists.set ?? lists['set-file']) !== undefined

/** The values of `--set` and `--set-file` of a command line, as `readGiven`. */
export const readGivenOf = (
  { lists = {} }: Lists,
  profiles: readonly KnownProfile[] | undefined,
): readonly Given[] => readGiven({ set: lists.set ?? [], setFile: lists['set-file'] ?? [] }, profiles)

/**
 * The values of a command line. A sensitive one comes from a file or from standard input only.
 * @param profiles of the definition that they are for; undefined where they are not known: then any value may be sensitive, and the host
 * alone judges the names
 * @param read reads a file; for tests
 * @throws Failure usage, without a value in it
 */
export function readGiven(
  { set, setFile }: Settings,
  profiles: readonly KnownProfile[] | undefined,
  read: (file: string) => string = readValue,
): readonly Given[] {
  const values = set.map((text) => {
    const { key, rest: value } = splitPair('--set', 'VALUE', text)
    return { option: '--set', key, value: () => value }
  })
  const files = setFile.map((text) => {
    const { key, rest: file } = splitPair('--set-file', 'FILE', text)
    return { option: '--set-file', key, value: () => read(file) }
  })
  const seen = new Set<string>()
  return [...values, ...files].map(({ option, key, value }) => {
    if (seen.has(key)) throw refuse(`${printable(key)} is set twice`)
    seen.add(key)
    const variable = findVariable(option, key, profiles)
    if (option === '--set' && variable.isSensitive !== false)
      throw refuse(
        `--set: ${printable(key)} ${
          variable.isSensitive === true
            ? 'is sensitive'
            : 'may be sensitive, which cannot be read while a change waits'
        }, and other users of this machine can read a command line; write the value into a file, or a pipe: --set-file ${printable(key)}=FILE`,
      )
    const { name, profileUid } = variable
    return { name, ...(profileUid === undefined ? {} : { profileUid }), value: value() }
  })
}

function splitPair(option: string, what: string, text: string): { key: string; rest: string } {
  const at = text.indexOf('=')
  // Not the text itself, which may be a secret.
  if (at <= 0) throw refuse(`${option} needs NAME=${what}`)
  return { key: text.slice(0, at), rest: text.slice(at + 1) }
}

interface Found {
  readonly name: string
  readonly profileUid: string | undefined
  /** Undefined where the profiles are not known. */
  readonly isSensitive: boolean | undefined
}

function findVariable(option: string, key: string, profiles: readonly KnownProfile[] | undefined): Found {
  const slash = key.lastIndexOf('/')
  const name = key.slice(slash + 1)
  const wanted = slash < 0 ? undefined : key.slice(0, slash)
  if (!profiles) return { name, profileUid: wanted, isSensitive: undefined }
  const meant = profiles.filter((each) => wanted === undefined || [each.uid, each.name].includes(wanted))
  if (meant.length === 0)
    throw refuse(
      `${option}: there is no profile ${printable(wanted ?? '')}${suggest(
        wanted ?? '',
        profiles.map((each) => each.name),
      )}`,
    )
  const declaring = meant.flatMap((profile) =>
    profile.variables.filter((each) => each.name === name).map((variable) => ({ profile, variable })),
  )
  const [first, second] = declaring
  if (!first)
    throw refuse(
      `${option}: there is no variable ${printable(name)}${suggest(
        name,
        meant.flatMap(({ variables }) => variables.map((each) => each.name)),
      )}`,
    )
  if (second)
    throw refuse(
      `${option}: several profiles have the variable ${printable(name)}; write one of: ${declaring
        .map(({ profile }) => `${profile.name}/${name}`)
        .map((each, index, all) =>
          all.indexOf(each) === all.lastIndexOf(each)
            ? each
            : `${declaring[index]?.profile.uid ?? ''}/${name}`,
        )
        .map(printable)
        .join(', ')}`,
    )
  return { name, profileUid: first.profile.uid, isSensitive: first.variable.isSensitive === true }
}

function suggest(name: string, known: readonly string[]): string {
  const near = nearestName(name, known)
  if (near !== undefined) return `; did you mean ${near}?`
  return known.length === 0 ? '; there are none' : `; there are: ${[...new Set(known)].join(', ')}`
}

/** A value in a file, without the line break at its end. */
const readValue = (file: string): string =>
  readBody(file, '--set-file')
    .toString()
    .replace(/\r?\n$/, '')

const refuse = (message: string) => new Failure('usage', message)
