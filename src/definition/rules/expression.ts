import {
  type Value,
  type Reference,
  type TemplateFunction,
  holdToLimit,
  isDict,
  isEmpty,
  isList,
  kindOf,
  Refusal,
  textOf,
  type Expression,
} from './functions/value.ts'
import { templateFunctions } from './functions/table.ts'
import { nearestName } from '../../base/nearest-name.ts'
import { printable } from '../../base/printable.ts'
import type { DefinitionCode } from './codes.ts'

export type Token =
  | { readonly kind: 'value'; readonly value: Value }
  | { readonly kind: 'reference'; readonly reference: Reference }
  | { readonly kind: 'word' | 'field'; readonly name: string }
  | { readonly kind: 'open' | 'close' | 'pipe' }
  /** Syntax of Go templates that macros do not have: variables, other fields, assignments. */
  | { readonly kind: 'other' }

interface Action {
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
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
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

/** A value, or the reason why there is none: it is not known yet (`later`), or this host never knows it (`never`). */
export type Known = { readonly value: Value } | { readonly missing: 'later' | 'never' }

/** The value of an expression, or the refusal of a function, as the end of a sentence. */
type Evaluated = Known | { readonly refusal: string }

type Choose = (values: readonly Known[]) => Known

const nothing: Known = { value: null }
/** A value that is never known counts as empty for functions that test for emptiness. */
const asEmpty = (known: Known): Known => ('missing' in known && known.missing === 'never' ? nothing : known)
const isChosen = (known: Known) => 'missing' in known || !isEmpty(known.value)

/** The first value that is not empty. */
const firstPresent: Choose = (values) => values.map(asEmpty).find(isChosen) ?? nothing

function takeFirst(isTaken: (known: Known) => boolean): Choose {
  return (values) => values.find((known) => 'missing' in known || isTaken(known)) ?? values.at(-1) ?? nothing
}

// Functions that choose between their arguments, so that not every argument has to be known.
const choices: ReadonlyMap<
  string,
  { readonly least: number; readonly most: number; readonly choose: Choose }
> = new Map([
  ['default', { least: 1, most: 2, choose: ([other = nothing, given = nothing]) => firstOr(given, other) }],
  ['coalesce', { least: 0, most: Infinity, choose: firstPresent }],
  ['and', { least: 1, most: Infinity, choose: takeFirst((known) => !isChosen(known)) }],
  ['or', { least: 1, most: Infinity, choose: takeFirst(isChosen) }],
  ['ternary', { least: 3, most: 3, choose: chooseBranch }],
])

function firstOr(given: Known, other: Known): Known {
  const present = asEmpty(given)
  return isChosen(present) ? present : other
}

function chooseBranch([yes = nothing, no = nothing, test = nothing]: readonly Known[]): Known {
  if ('missing' in test) return test
  if (typeof test.value !== 'boolean') throw new Refusal(`takes a boolean, not ${kindOf(test.value)}`)
  return test.value ? yes : no
}

/** Least and most arguments of a function; undefined if no function has that name. */
const countsOf = (name: string): Pick<TemplateFunction, 'least' | 'most'> | undefined =>
  choices.get(name) ?? templateFunctions.get(name)

export const functionNames: readonly string[] = [...choices.keys(), ...templateFunctions.keys()]

interface EvaluationEdges {
  readonly valueOf: (reference: Reference) => Known
  /** Called with the number of characters that each function returns. @throws Refusal to end the evaluation */
  readonly spend: (length: number) => void
}

/** Evaluates an expression. A refusal is returned, not thrown. */
export function evaluate(expression: Expression, { valueOf, spend }: EvaluationEdges): Evaluated {
  const visit = (each: Expression): Known => {
    switch (each.kind) {
      case 'literal':
        return { value: each.value }
      case 'reference':
        return valueOf(each.reference)
      case 'field':
        return readField(visit(each.of), each.name)
      case 'call':
        return callFunction(each.name, each.values.map(visit), spend)
    }
  }
  try {
    return visit(expression)
  } catch (error) {
    if (error instanceof Refusal) return { refusal: error.message }
    throw error
  }
}

function callFunction(name: string, values: readonly Known[], spend: (length: number) => void): Known {
  try {
    const choice = choices.get(name)
    if (choice) return choice.choose(values)
    const missing = values.flatMap((known) => ('missing' in known ? [known] : []))
    if (missing.length > 0) return missing.find((known) => known.missing === 'later') ?? missing[0] ?? nothing
    const value = templateFunctions
      .get(name)
      ?.call(values.map((known) => ('value' in known ? known.value : null)))
    if (value === undefined) throw new Refusal('is unknown')
    holdToLimit(sizeOf(value))
    spend(name.length + sizeOf(value))
    return { value }
  } catch (error) {
    if (error instanceof Refusal && !error.message.startsWith('function '))
      throw new Refusal(`function ${name} ${error.message}`, { cause: error })
    throw error
  }
}

function sizeOf(value: Value): number {
  if (typeof value === 'string') return value.length
  return isList(value) ? value.reduce((sum: number, each) => sum + 1 + sizeOf(each), 0) : 0
}

const versionFields: readonly string[] = ['major', 'minor', 'patch', 'prerelease', 'metadata', 'original']

/** `.Major` of a version, `._0` of the map that `split` returns. */
function readField(known: Known, name: string): Known {
  if ('missing' in known) return known
  const { value } = known
  if (isDict(value)) return { value: value.get(name) ?? '' }
  const field = `${name.slice(0, 1).toLowerCase()}${name.slice(1)}`
  if (typeof value === 'object' && value !== null && !isList(value)) {
    if (name === 'String') return { value: value.text }
    if (/^[A-Z]/.test(name) && versionFields.includes(field)) return { value: value[field as 'major'] }
  }
  throw new Refusal(`function of .${name} has no such field in ${kindOf(value)}`)
}

/** The text of a value in a template. nil becomes an empty text, for which Go writes `<no value>`. */
export const writeValue = (value: Value): string => (value === null ? '' : textOf(value))

export interface Fault {
  readonly code: DefinitionCode
  readonly message: string
}

class Invalid extends Error {
  readonly code: DefinitionCode
  constructor(code: DefinitionCode, message: string) {
    super(message)
    this.code = code
  }
}

const invalid = (message: string) => new Invalid('MacroInvalid', message)

/**
 * Parses a pipeline of Go templates, `.spectro.system.NAME | function value | function`, also with parentheses. It reports
 * all faults that do not depend on values: unknown functions, and too few or too many arguments.
 */
export function parseExpression(tokens: readonly Token[]): { expression: Expression } | { fault: Fault } {
  let next = 0
  const peek = () => tokens[next]?.kind

  const operand = (): Expression => {
    const token = tokens[next]
    next += 1
    switch (token?.kind) {
      case 'value':
        return { kind: 'literal', value: token.value }
      case 'reference':
        return { kind: 'reference', reference: token.reference }
      case 'word':
        return call(token.name, [])
      case 'open': {
        let inside = pipeline()
        if (peek() !== 'close') throw invalid('has a parenthesis that is not closed')
        next += 1
        for (let field = tokens[next]; field?.kind === 'field'; field = tokens[next]) {
          inside = { kind: 'field', of: inside, name: field.name }
          next += 1
        }
        return inside
      }
      case undefined:
        throw invalid('ends where a value or a function is expected')
      case 'close':
      case 'field':
      case 'other':
      case 'pipe':
        throw invalid('has another token where a value or a function is expected')
    }
  }
  const isOperand = () => ['value', 'reference', 'word', 'open'].includes(peek() ?? '')

  /** A function with its arguments, of which the last is the piped value; or a single value. */
  const command = (piped: readonly Expression[]): Expression => {
    const token = tokens[next]
    if (token?.kind === 'word') {
      next += 1
      const values: Expression[] = []
      while (isOperand()) values.push(operand())
      return call(token.name, [...values, ...piped])
    }
    if (piped.length > 0) throw invalid('has no function after |')
    const value = operand()
    if (value.kind === 'literal' && value.value === null) throw invalid('has nil where a value is expected')
    if (isOperand()) throw invalid('has two values and no function')
    return value
  }
  const pipeline = (): Expression => {
    let expression = command([])
    while (peek() === 'pipe') {
      next += 1
      expression = command([expression])
    }
    return expression
  }

  try {
    const expression = pipeline()
    if (next < tokens.length) throw invalid('has something after its end')
    return { expression }
  } catch (error) {
    if (error instanceof Invalid) return { fault: { code: error.code, message: error.message } }
    throw error
  }
}

function call(name: string, values: readonly Expression[]): Expression {
  const counts = countsOf(name)
  if (counts === undefined) {
    const near = nearestName(name, functionNames)
    const hint = near === undefined ? '' : `; did you mean ${near}?`
    throw new Invalid('MacroFunctionUnknown', `has the unknown function ${printable(name)}${hint}`)
  }
  const { least, most } = counts
  if (values.length < least || values.length > most) {
    const wanted = least === most ? least : `${least}${most === Infinity ? ' or more' : ` to ${most}`}`
    throw invalid(`gives the function ${name} ${values.length} values; it takes ${wanted}`)
  }
  return { kind: 'call', name, values }
}
