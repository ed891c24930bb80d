import { createHash } from 'node:crypto'
import { define, defineMany, type TemplateFunction } from './define.ts'
import { quoted } from './text.ts'
import { holdToLimit, isDict, isList, Refusal, textOf, type Value } from './value.ts'

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

export const encodingFunctions: Readonly<Record<string, TemplateFunction>> = {
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
