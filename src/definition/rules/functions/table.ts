import { createHash } from 'node:crypto'
import {
  define,
  defineMany,
  type TemplateFunction,
  holdToLimit,
  isDict,
  isList,
  Refusal,
  textOf,
  type Value,
  isEmpty,
  kindOf,
} from './value.ts'
import { quoted, textsOf, textFunctions } from './text.ts'
import { parseVersion, satisfies } from './version.ts'

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

function encodeBase32(text: string): string {
  const bytes = Buffer.from(text)
  let [bits, count] = [0, 0]
  let encoded = ''
  for (const byte of bytes) {
    bits = (bits << 8) | byte
    for (count += 8; count >= 5; count -= 5) encoded += alphabet[(bits >>> (count - 5)) & 31] ?? ''
    bits &= 31
  }
  if (count > 0) encoded += alphabet[(bits << (5 - count)) & 31] ?? ''
  return encoded.padEnd(Math.ceil(encoded.length / 8) * 8, '=')
}

const toText = (bytes: Uint8Array): string => {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new Refusal('gives a result that is not UTF-8 text')
  }
}

function decodeBase64(text: string): string {
  const letters = text.replace(/[\r\n]/g, '')
  if (letters.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(letters))
    throw new Refusal('takes base64 with its padding')
  return toText(Buffer.from(letters, 'base64'))
}

function decodeBase32(text: string): string {
  const letters = text.replace(/[\r\n]/g, '')
  if (letters.length % 8 !== 0 || !/^[A-Z2-7]*(?:={0}|=|={3}|={4}|={6})$/.test(letters))
    throw new Refusal('takes base32 with its padding')
  const bytes: number[] = []
  let [bits, count] = [0, 0]
  for (const letter of letters.replace(/=+$/, '')) {
    bits = ((bits << 5) | alphabet.indexOf(letter)) & 0xfff
    count += 5
    if (count >= 8) {
      count -= 8
      bytes.push((bits >>> count) & 255)
    }
  }
  return toText(Uint8Array.from(bytes))
}

function adler32(text: string): string {
  let [low, high] = [1, 0]
  for (const byte of Buffer.from(text)) {
    low = (low + byte) % 65_521
    high = (high + low) % 65_521
  }
  return (BigInt(high) * 65_536n + BigInt(low)).toString()
}

const hash = (algorithm: string) =>
  define(['text'], (text) => createHash(algorithm).update(text).digest('hex'))

/** As Go writes JSON: characters that are special in HTML are escaped, unless `isRaw`. */
function toJson(value: Value, isRaw: boolean): string {
  if (isList(value)) return `[${value.map((each) => toJson(each, isRaw)).join(',')}]`
  if (isDict(value)) {
    const pairs = [...value].sort(([one], [other]) => (one < other ? -1 : 1))
    return `{${pairs.map(([key, each]) => `${toJson(key, isRaw)}:${toJson(each, isRaw)}`).join(',')}}`
  }
  if (typeof value === 'string') {
    const escaped = JSON.stringify(value).replace(/[\u2028\u2029]/g, escapeUnit)
    return isRaw ? escaped : escaped.replace(/[<>&]/g, escapeUnit)
  }
  if (typeof value === 'object' && value !== null) return toJson(value.text, isRaw)
  return value === null ? 'null' : Object.is(value, -0) ? '-0' : value.toString()
}
const escapeUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

const verb = /%(?:([sdvqt%])|.?)/gsu

/** `%s`, `%d`, `%v`, `%q` and `%t`, without widths. */
function printf(values: readonly Value[]): string {
  const [format, ...given] = values
  if (typeof format !== 'string') throw new Refusal('takes text as its first argument')
  holdToLimit(given.reduce((sum: number, each) => sum + textOf(each).length, format.length))
  let next = 0
  const text = format.replace(verb, (whole, letter: string | undefined) => {
    if (letter === '%') return '%'
    if (letter === undefined) throw new Refusal(`supports %s, %d, %v, %q and %t, not ${whole}`)
    const value = given[next]
    if (value === undefined) throw new Refusal(`has no value for ${whole}`)
    next += 1
    return writeVerb(letter, value)
  })
  if (next < given.length) throw new Refusal('has more values than its format uses')
  return text
}

function writeVerb(letter: string, value: Value): string {
  const isRight =
    letter === 'v' ||
    (letter === 'd' && typeof value === 'bigint') ||
    (letter === 't' && typeof value === 'boolean') ||
    ((letter === 's' || letter === 'q') && typeof value === 'string')
  if (!isRight) throw new Refusal(`has %${letter} for a value of another kind`)
  return letter === 'q' ? quoted(textOf(value)) : textOf(value)
}

const encodingFunctions: Readonly<Record<string, TemplateFunction>> = {
  b64enc: define(['text'], (text) => Buffer.from(text).toString('base64')),
  b64dec: define(['text'], decodeBase64),
  b32enc: define(['text'], encodeBase32),
  b32dec: define(['text'], decodeBase32),
  sha1sum: hash('sha1'),
  sha256sum: hash('sha256'),
  sha512sum: hash('sha512'),
  adler32sum: define(['text'], adler32),
  toJson: define(['any'], (value) => toJson(value, false)),
  toRawJson: define(['any'], (value) => toJson(value, true)),
  printf: defineMany(1, printf),
  urlquery: define(['any'], (value) =>
    encodeURIComponent(textOf(value))
      .replace(/%20/g, '+')
      .replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`),
  ),
}

const nothing: Value = null

function split(separator: string, text: string): string[] {
  return separator === '' ? Array.from(text) : text.split(separator)
}

/** At most `count` parts; the last one contains the rest. */
function splitCount(separator: string, count: bigint, text: string): string[] {
  if (count === 0n) return []
  const parts = split(separator, text)
  if (count < 0n || parts.length <= count) return parts
  const kept = Number(count) - 1
  return [...parts.slice(0, kept), parts.slice(kept).join(separator)]
}

const numbered = (parts: readonly string[]) => new Map(parts.map((part, index) => [`_${index}`, part]))

const byCode = (one: string, other: string) => {
  const [ours, theirs] = [Buffer.from(one), Buffer.from(other)]
  return Buffer.compare(ours, theirs)
}

function lengthOf(value: Value): bigint {
  if (typeof value === 'string') return BigInt(Buffer.byteLength(value))
  if (isList(value)) return BigInt(value.length)
  if (isDict(value)) return BigInt(value.size)
  throw new Refusal(`takes text, a list or a map, not ${kindOf(value)}`)
}

function at(value: Value, index: Value | undefined): Value {
  if (isList(value) && typeof index === 'bigint') {
    const found = index < 0n ? undefined : value[Number(index)]
    if (found === undefined) throw new Refusal(`has the index ${index} for a list of ${value.length} values`)
    return found
  }
  if (isDict(value) && typeof index === 'string') return value.get(index) ?? ''
  throw new Refusal(`takes a list and integers, not ${kindOf(value)}`)
}

const uniq = (list: readonly Value[]) => [...new Set(list)]

const listFunctions: Readonly<Record<string, TemplateFunction>> = {
  list: defineMany(0, (values) => values),
  tuple: defineMany(0, (values) => values),
  splitList: define(['text', 'text'], split),
  split: define(['text', 'text'], (separator, text) => numbered(split(separator, text))),
  splitn: define(['text', 'integer', 'text'], (separator, count, text) =>
    numbered(splitCount(separator, count, text)),
  ),
  toStrings: define(['any'], textsOf),
  join: define(['text', 'any'], (separator, value) => {
    const texts = textsOf(value)
    holdToLimit(texts.reduce((sum, { length }) => sum + length + separator.length, 0))
    return texts.join(separator)
  }),
  sortAlpha: define(['any'], (value) => textsOf(value).sort(byCode)),
  first: define(['list'], (list) => list[0] ?? nothing),
  last: define(['list'], (list) => list.at(-1) ?? nothing),
  rest: define(['list'], (list) => list.slice(1)),
  initial: define(['list'], (list) => list.slice(0, -1)),
  reverse: define(['list'], (list) => list.toReversed()),
  uniq: define(['list'], uniq),
  compact: define(['list'], (list) => list.filter((value) => !isEmpty(value))),
  has: define(['any', 'any'], (needle, list) => isList(list) && list.includes(needle)),
  len: define(['any'], lengthOf),
  index: defineMany(1, ([value = nothing, ...indices]) => indices.reduce(at, value)),
}

/** Go compares only values of the same kind. */
function checkSameKind(one: Value, other: Value): void {
  if (typeof one !== typeof other || typeof one === 'object')
    throw new Refusal(`cannot compare ${kindOf(one)} with ${kindOf(other)}`)
}

function isSame(one: Value, other: Value): boolean {
  if (one === null || other === null) return one === other
  checkSameKind(one, other)
  return one === other
}

function order(one: Value, other: Value): number {
  checkSameKind(one, other)
  if (typeof one === 'boolean') throw new Refusal('cannot order booleans')
  if (typeof one === 'string') return Buffer.compare(Buffer.from(one), Buffer.from(other as string))
  return one === other ? 0 : (one as bigint) < (other as bigint) ? -1 : 1
}

const requireVersion = (text: string) => {
  const version = parseVersion(text)
  if (version === undefined) throw new Refusal('takes a version such as 1.28.3')
  return version
}

const logicFunctions: Readonly<Record<string, TemplateFunction>> = {
  empty: define(['any'], isEmpty),
  not: define(['any'], isEmpty),
  all: defineMany(0, (values) => !values.some(isEmpty)),
  any: defineMany(0, (values) => values.some((value) => !isEmpty(value))),
  eq: defineMany(2, ([one = null, ...others]) => others.some((other) => isSame(one, other))),
  ne: define(['any', 'any'], (one, other) => !isSame(one, other)),
  lt: define(['any', 'any'], (one, other) => order(one, other) < 0),
  le: define(['any', 'any'], (one, other) => order(one, other) <= 0),
  gt: define(['any', 'any'], (one, other) => order(one, other) > 0),
  ge: define(['any', 'any'], (one, other) => order(one, other) >= 0),
  semver: define(['text'], requireVersion),
  semverCompare: define(['text', 'text'], (constraint, text) => {
    const isSatisfied = satisfies(requireVersion(text), constraint)
    if (isSatisfied === undefined) throw new Refusal('takes a constraint such as >=1.28.0')
    return isSatisfied
  }),
}

const least = -(1n << 63n)
const most = (1n << 63n) - 1n

/** Overflow as in Go's int64: the value wraps around. */
const wrap = (value: bigint) => BigInt.asIntN(64, value)

/** The function `int`: a value that is not a number becomes 0. */
function toInteger(value: Value): bigint {
  if (typeof value === 'bigint') return value
  if (typeof value === 'number') return Math.abs(value) < 2 ** 63 ? BigInt(Math.trunc(value)) : least
  if (typeof value === 'boolean') return value ? 1n : 0n
  return typeof value === 'string' ? parseInteger(value) : 0n
}

/** Parses text like Go: an integer of any base, also `1.0`. */
function parseInteger(text: string): bigint {
  const [, sign = '', digits = ''] = /^([-+]?)([0-9a-zA-Z_]+)(?:\.0*)?$/.exec(text) ?? []
  const number = digitsOf(digits)
  if (number === undefined) return 0n
  const value = sign === '-' ? -number : number
  return value < least || value > most ? 0n : value
}

function digitsOf(digits: string): bigint | undefined {
  if (digits === '' || digits.length > 80) return undefined
  const isBased = /^0[xX][0-9a-fA-F]+$|^0[oO][0-7]+$|^0[bB][01]+$/.test(digits)
  if (isBased) return BigInt(digits.toLowerCase())
  if (/^0[0-7]+$/.test(digits)) return BigInt(`0o${digits}`)
  return /^(?:0|[1-9][0-9]*)$/.test(digits) ? BigInt(digits) : undefined
}

function toFloat(value: Value): number {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  if (typeof value === 'boolean') return value ? 1 : 0
  if (typeof value !== 'string') return 0
  return /^[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$/.test(value) &&
    Number.isFinite(Number(value))
    ? Number(value)
    : 0
}

function divide(by: (one: bigint, other: bigint) => bigint): TemplateFunction {
  return define(['any', 'any'], (one, other) => {
    const divisor = toInteger(other)
    if (divisor === 0n) throw new Refusal('cannot divide by 0')
    return wrap(by(toInteger(one), divisor))
  })
}

const extreme = (isBetter: (one: bigint, other: bigint) => boolean) =>
  defineMany(1, (values) =>
    values.map(toInteger).reduce((best, each) => (isBetter(each, best) ? each : best)),
  )
const largest = extreme((one, other) => one > other)

/** Rounds to decimal places as sprig does: positive values half up, negative values always down (-2.3 becomes -3). */
function round(value: number, places: number): number {
  const factor = 10 ** places
  const scaled = value * factor
  const rest = scaled - Math.trunc(scaled)
  return (rest >= 0.5 ? Math.ceil(scaled) : Math.floor(scaled)) / factor
}

const numberFunctions: Readonly<Record<string, TemplateFunction>> = {
  int: define(['any'], toInteger),
  int64: define(['any'], toInteger),
  float64: define(['any'], toFloat),
  atoi: define(['text'], (text) => (/^[-+]?[0-9]+$/.test(text) ? atoi(text) : 0n)),
  add: defineMany(0, (values) => values.map(toInteger).reduce((sum, each) => wrap(sum + each), 0n)),
  add1: define(['any'], (value) => wrap(toInteger(value) + 1n)),
  sub: define(['any', 'any'], (one, other) => wrap(toInteger(one) - toInteger(other))),
  mul: defineMany(1, (values) => values.map(toInteger).reduce((product, each) => wrap(product * each), 1n)),
  div: divide((one, other) => one / other),
  mod: divide((one, other) => one % other),
  max: largest,
  biggest: largest,
  min: extreme((one, other) => one < other),
  floor: define(['any'], (value) => Math.floor(toFloat(value))),
  ceil: define(['any'], (value) => Math.ceil(toFloat(value))),
  round: define(['any', 'integer'], (value, places) => {
    if (places < 0n || places > 15n) throw new Refusal('takes 0 to 15 places')
    return round(toFloat(value), Number(places))
  }),
}

function atoi(text: string): bigint {
  if (text.length > 80) return text.startsWith('-') ? least : most
  const value = BigInt(text.replace(/^\+/, ''))
  return value < least ? least : value > most ? most : value
}

/**
 * The functions of templates (http://masterminds.github.io/sprig/ and Go's own) that this host supports: those whose result
 * depends only on their arguments. A test compares each with recorded results of helm. Functions that choose between
 * arguments, such as `default`, are in expression.ts.
 */
export const templateFunctions: ReadonlyMap<string, TemplateFunction> = new Map(
  [textFunctions, numberFunctions, listFunctions, logicFunctions, encodingFunctions].flatMap((each) =>
    Object.entries(each),
  ),
)
