import type { Value } from './functions/value.ts'
import type { Reference } from './expression.ts'

export type Token =
  | { readonly kind: 'value'; readonly value: Value }
  | { readonly kind: 'reference'; readonly reference: Reference }
  | { readonly kind: 'word' | 'field'; readonly name: string }
  | { readonly kind: 'open' | 'close' | 'pipe' }
  /** Syntax of Go templates that macros do not have: variables, other fields, assignments. */
  | { readonly kind: 'other' }

export interface Action {
  readonly tokens: readonly Token[]
  /** Offset after its closing braces. */
  readonly end: number
  readonly trimsBefore: boolean
  readonly trimsAfter: boolean
}

// Longer than any published action; a longer one is not parsed.
const lengthLimit = 2_048

const opening = /\{\{(-(?=[ \t\r\n]))?/y
const closing = /(?:(?<=[ \t\r\n])(-))?\}\}/y
const blanks = /[ \t\r\n]+/y
const reference = /\.spectro\.(var|system|pack|macro)\.([^\s{}|()"`\\,]{1,1024})/y
const field = /\.([A-Za-z_][A-Za-z0-9_]*)/y
const word = /[A-Za-z_][A-Za-z0-9_]*/y
const integer = /[-+]?(?:0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|0|[1-9][0-9_]*)(?![A-Za-z0-9_.])/y
const float = /[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?(?![A-Za-z0-9_.])/y
const quoted = /"((?:[^"\\\r\n]|\\[^\r\n])*)"/y
// A quoted text inside a double-quoted YAML scalar.
const escaped = /\\"([^"\\\r\n]*)\\"/y
const raw = /`([^`]*)`/y
const other = /\$[A-Za-z0-9_]*|\.(?:[A-Za-z_][A-Za-z0-9_.]*)?|:?=|,/y

const constants: ReadonlyMap<string, Value> = new Map<string, Value>([
  ['true', true],
  ['false', false],
  ['nil', null],
])

/** Reads an action of a Go template, `{{ ... }}`, like Go's lexer. Undefined if it is not an action or does not end. */
export function parseAction(text: string, start: number): Action | undefined {
  const limit = Math.min(text.length, start + lengthLimit)
  const match = (pattern: RegExp, at: number) => {
    pattern.lastIndex = at
    const found = pattern.exec(text)
    return found !== null && pattern.lastIndex <= limit ? found : undefined
  }
  const open = match(opening, start)
  if (!open) return undefined
  const tokens: Token[] = []
  let at = start + open[0].length
  for (;;) {
    at += match(blanks, at)?.[0].length ?? 0
    const close = match(closing, at)
    if (close)
      return {
        tokens,
        end: at + close[0].length,
        trimsBefore: open[1] !== undefined,
        trimsAfter: close[1] !== undefined,
      }
    const found = readToken(text, at, match)
    if (!found) return undefined
    tokens.push(found.token)
    at += found.length
  }
}

type Match = (pattern: RegExp, at: number) => RegExpExecArray | undefined

function readToken(text: string, at: number, match: Match): { token: Token; length: number } | undefined {
  const single = { '(': 'open', ')': 'close', '|': 'pipe' }[text[at] ?? ''] as
    'open' | 'close' | 'pipe' | undefined
  if (single !== undefined) return { token: { kind: single }, length: 1 }
  const asked = match(reference, at)
  if (asked) {
    const [{ length }, kind, name = ''] = asked
    return { token: { kind: 'reference', reference: { kind: kind as Reference['kind'], name } }, length }
  }
  const literal = readLiteral(at, match)
  if (literal) return { token: { kind: 'value', value: literal.value }, length: literal.length }
  const name = match(word, at)?.[0]
  if (name !== undefined) {
    const constant = constants.get(name)
    const token: Token = constant === undefined ? { kind: 'word', name } : { kind: 'value', value: constant }
    return { token, length: name.length }
  }
  const ofParenthesis = text[at - 1] === ')' ? match(field, at) : undefined
  if (ofParenthesis)
    return { token: { kind: 'field', name: ofParenthesis[1] ?? '' }, length: ofParenthesis[0].length }
  const rest = match(other, at)
  return rest ? { token: { kind: 'other' }, length: rest[0].length } : undefined
}

function readLiteral(at: number, match: Match): { value: Value; length: number } | undefined {
  const whole = match(integer, at)?.[0]
  if (whole !== undefined) return { value: toInteger(whole), length: whole.length }
  const number = match(float, at)?.[0]
  if (number !== undefined) return { value: Number(number), length: number.length }
  const text = match(raw, at) ?? match(escaped, at)
  if (text) return { value: text[1] ?? '', length: text[0].length }
  const inQuotes = match(quoted, at)
  const value = inQuotes ? unquote(inQuotes[1] ?? '') : undefined
  return inQuotes && value !== undefined ? { value, length: inQuotes[0].length } : undefined
}

function toInteger(text: string): bigint {
  const [, sign, digits = ''] = /^([-+]?)(.*)$/.exec(text.replaceAll('_', '')) ?? []
  const value = BigInt(/^0[0-7]+$/.test(digits) ? `0o${digits}` : digits)
  return sign === '-' ? -value : value
}

const escapes = /\\(?:([abfnrtv\\'"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))/g
const short: Readonly<Record<string, string>> = {
  ...{ a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' },
  ...{ '\\': '\\', "'": "'", '"': '"' },
}

/** The value of a Go string literal without its quotes; undefined if it has an escape that Go refuses. */
function unquote(text: string): string | undefined {
  const wrong: string[] = []
  const value = text.replace(escapes, (found, ...groups: (string | undefined)[]) => {
    const [letter, two, four, eight, octal] = groups
    if (letter !== undefined) return short[letter] ?? ''
    const code = octal === undefined ? parseInt(two ?? four ?? eight ?? '', 16) : parseInt(octal, 8)
    // Above 0x7f, `\x` and octal escapes are bytes, not characters.
    const isCharacter = two === undefined && octal === undefined ? code <= 0x10ffff : code < 0x80
    if (isCharacter) return String.fromCodePoint(code)
    wrong.push(found)
    return ''
  })
  return wrong.length === 0 ? value : undefined
}
