import {
  define,
  defineMany,
  type TemplateFunction,
  holdToLimit,
  isList,
  Refusal,
  textOf,
  type Value,
} from './value.ts'

// unicode.IsSpace; JavaScript's \s has U+FEFF and lacks U+0085.
const blank = '\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000'
const blanks = new RegExp(`[${blank}]+`, 'g')
const oneBlank = new RegExp(`^[${blank}]$`)
const isBlank = (character: string) => oneBlank.test(character)
const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u

/** Go changes each character by itself: one that would become several is not changed. */
const changeCase = (text: string, change: (character: string) => string): string =>
  Array.from(text, (character) => {
    const changed = change(character)
    return changed.length > character.length && Array.from(changed).length > 1 ? character : changed
  }).join('')
const isAscii = (text: string) => /^[\0-\x7f]*$/.test(text)
const upper = (text: string) =>
  isAscii(text) ? text.toUpperCase() : changeCase(text, (character) => character.toUpperCase())
const lower = (text: string) =>
  isAscii(text)
    ? text.toLowerCase()
    : changeCase(text, (character) => (character === '\u0130' ? 'i' : character.toLowerCase()))

const titles: Readonly<Record<string, string>> = {
  '\u01c6': '\u01c5',
  '\u01c9': '\u01c8',
  '\u01cc': '\u01cb',
  '\u01f3': '\u01f2',
}
const toTitle = (character: string) => titles[lower(character)] ?? upper(character)

/** Whether a character separates words for Go's strings.Title. */
const isSeparator = (character: string) =>
  /[\p{L}\p{Nd}_]/u.test(character) ? false : character < '\x80' || isBlank(character)

function title(text: string): string {
  let before = ' '
  return Array.from(text, (character) => {
    const changed = isSeparator(before) ? toTitle(character) : character
    before = character
    return changed
  }).join('')
}

/** Maps each character. `isFirst`: it is the first character of a word. */
function mapWords(text: string, change: (character: string, isFirst: boolean) => string): string {
  let isFirst = true
  return Array.from(text, (character) => {
    if (isBlank(character)) {
      isFirst = true
      return change(character, false)
    }
    const changed = change(character, isFirst)
    isFirst = false
    return changed
  }).join('')
}

/** A part of a text; the offsets are bytes, as in Go. */
function slice(text: string, from: number, to: number): string {
  if (from < 0 || from > to) throw new Refusal('has a start after its end')
  const bytes = Buffer.from(text)
  if (to > bytes.length) throw new Refusal(`has an end after the last of ${bytes.length} bytes`)
  const part = bytes.subarray(from, to)
  const result = part.toString()
  if (result.includes('\ufffd') && !text.includes('\ufffd')) throw new Refusal('would split a character')
  return result
}
const bytesOf = (text: string) => Buffer.byteLength(text)
// Counts are limited to 32 bits, which is more than the length of any text.
const toIndex = (count: bigint) =>
  Number(count < -(1n << 31n) ? -(1n << 31n) : count > 1n << 31n ? 1n << 31n : count)

function substring(start: bigint, end: bigint, text: string): string {
  const [from, to] = [toIndex(start), toIndex(end)]
  if (from < 0) return slice(text, 0, to)
  return to < 0 || to > bytesOf(text) ? slice(text, from, bytesOf(text)) : slice(text, from, to)
}

function truncate(count: bigint, text: string): string {
  const [wanted, length] = [toIndex(count), bytesOf(text)]
  if (wanted < 0 && length + wanted > 0) return slice(text, length + wanted, length)
  return wanted >= 0 && length > wanted ? slice(text, 0, wanted) : text
}

function repeat(count: bigint, text: string): string {
  if (count < 0n) throw new Refusal('takes no negative count')
  // An empty text stays empty for any count, however large.
  if (text === '') return ''
  holdToLimit(text.length * toIndex(count))
  return text.repeat(toIndex(count))
}

function indent(count: bigint, text: string): string {
  if (count < 0n) throw new Refusal('takes no negative count')
  const lines = text.split('\n')
  holdToLimit(text.length + lines.length * toIndex(count))
  const pad = ' '.repeat(toIndex(count))
  return lines.map((line) => pad + line).join('\n')
}

function replace(old: string, by: string, text: string): string {
  const parts = old === '' ? ['', ...Array.from(text), ''] : text.split(old)
  holdToLimit(text.length + parts.length * by.length)
  return parts.join(by)
}

/** Go's `%q`. */
export function quoted(text: string): string {
  const short: Record<string, string> = {
    '\x07': '\\a',
    '\b': '\\b',
    '\f': '\\f',
    '\n': '\\n',
    '\r': '\\r',
    '\t': '\\t',
  }
  const escape = (character: string): string => {
    if (character === '"' || character === '\\') return `\\${character}`
    const known = character === '\v' ? '\\v' : short[character]
    if (known !== undefined) return known
    if (printable.test(character)) return character
    const code = character.codePointAt(0) ?? 0
    const digits = code.toString(16)
    if (code < 0x80) return `\\x${digits.padStart(2, '0')}`
    return code < 0x10000 ? `\\u${digits.padStart(4, '0')}` : `\\U${digits.padStart(8, '0')}`
  }
  return `"${Array.from(text, escape).join('')}"`
}

/** Some functions of sprig treat each byte as a character. */
const bytesAsText = (text: string) => Buffer.from(text).toString('latin1')

const present = (values: readonly Value[]) => values.filter((value) => value !== null)
/** The texts of a list, or of one value. */
export const textsOf = (value: Value): string[] =>
  isList(value) ? present(value).map(textOf) : value === null ? [] : [textOf(value)]

function trimAll(cutset: string, text: string): string {
  const cut = new Set(cutset)
  const characters = Array.from(text)
  let [from, to] = [0, characters.length]
  while (from < to && cut.has(characters[from] ?? '')) from += 1
  while (to > from && cut.has(characters[to - 1] ?? '')) to -= 1
  return characters.slice(from, to).join('')
}

export const trim = (text: string) => {
  const isText = (character: string) => !isBlank(character)
  const characters = Array.from(text)
  return characters.slice(characters.findIndex(isText), characters.findLastIndex(isText) + 1).join('')
}

export const textFunctions: Readonly<Record<string, TemplateFunction>> = {
  trim: define(['text'], trim),
  trimAll: define(['text', 'text'], trimAll),
  trimall: define(['text', 'text'], trimAll),
  trimPrefix: define(['text', 'text'], (prefix, text) =>
    text.startsWith(prefix) ? text.slice(prefix.length) : text,
  ),
  trimSuffix: define(['text', 'text'], (suffix, text) =>
    text.endsWith(suffix) ? text.slice(0, text.length - suffix.length) : text,
  ),
  upper: define(['text'], upper),
  lower: define(['text'], lower),
  title: define(['text'], title),
  untitle: define(['text'], (text) => mapWords(text, (each, isFirst) => (isFirst ? lower(each) : each))),
  swapcase: define(['text'], (text) =>
    mapWords(text, (each, isFirst) => {
      if (/\p{Lu}|\p{Lt}/u.test(each)) return lower(each)
      if (!/\p{Ll}/u.test(each)) return each
      return isFirst ? toTitle(each) : upper(each)
    }),
  ),
  nospace: define(['text'], (text) => {
    const bytes = bytesAsText(text)
    const left = bytes.replace(blanks, '')
    return left.length === bytes.length ? text : left
  }),
  initials: define(['text'], (text) => mapWords(bytesAsText(text), (each, isFirst) => (isFirst ? each : ''))),
  abbrev: define(['integer', 'text'], (width, text) =>
    width < 4n || bytesOf(text) <= toIndex(width) ? text : `${slice(text, 0, toIndex(width) - 3)}...`,
  ),
  repeat: define(['integer', 'text'], repeat),
  substr: define(['integer', 'integer', 'text'], substring),
  trunc: define(['integer', 'text'], truncate),
  contains: define(['text', 'text'], (part, text) => text.includes(part)),
  hasPrefix: define(['text', 'text'], (prefix, text) => text.startsWith(prefix)),
  hasSuffix: define(['text', 'text'], (suffix, text) => text.endsWith(suffix)),
  replace: define(['text', 'text', 'text'], replace),
  indent: define(['integer', 'text'], indent),
  nindent: define(['integer', 'text'], (count, text) => `\n${indent(count, text)}`),
  plural: define(['text', 'text', 'integer'], (one, many, count) => (count === 1n ? one : many)),
  quote: defineMany(0, (values) =>
    present(values)
      .map((value) => quoted(textOf(value)))
      .join(' '),
  ),
  squote: defineMany(0, (values) =>
    present(values)
      .map((value) => `'${textOf(value)}'`)
      .join(' '),
  ),
  cat: defineMany(0, (values) => present(values).map(textOf).join(' ')),
  toString: define(['any'], textOf),
}
