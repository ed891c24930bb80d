import {
  orderPaths,
  refuse,
  type ListResource,
  type OrderTerm,
  familyPart,
  fieldAt,
  filterPaths,
  findField,
  type FieldType,
  type FieldValue,
} from './resource.ts'
import { parseTime } from '../base/time.ts'

// Each term adds a value to the token.
const maximumTerms = 5

/**
 * Parses `<path>=1,<path>=-1`. The key of the resource is appended in the direction of the last term, so that the order
 * is total and one index can serve it. Terms after the key have no effect and are dropped.
 * @throws AppError BadRequest
 */
export function parseOrder(text: string, resource: ListResource): readonly OrderTerm[] {
  const allowed = orderPaths(resource)
  const terms = text.split(',').map((term): OrderTerm => {
    const { path = '', sign } = /^(?<path>.*)=(?<sign>1|-1)$/s.exec(term)?.groups ?? {}
    if (sign === undefined)
      throw refuse('orderBy', 'orderBy must have the form <path>=1 or <path>=-1, with commas between', {
        allowed,
      })
    if (!allowed.includes(path))
      throw refuse('orderBy', `orderBy may only name ${allowed.join(', ')}`, { allowed })
    return { path, direction: sign === '1' ? 1 : -1 }
  })
  if (new Set(terms.map(({ path }) => path)).size < terms.length)
    throw refuse('orderBy', 'orderBy may name a path only once')
  if (terms.length > maximumTerms) throw refuse('orderBy', `orderBy may name at most ${maximumTerms} paths`)
  return totalOrder(terms, resource.key)
}

/** The order for a query without `orderBy`. */
export const defaultOrder = ({ defaultOrder: terms = [], key }: ListResource): readonly OrderTerm[] =>
  totalOrder(terms, key)

function totalOrder(terms: readonly OrderTerm[], key: string): readonly OrderTerm[] {
  const keyAt = terms.findIndex(({ path }) => path === key)
  if (keyAt !== -1) return terms.slice(0, keyAt + 1)
  return [...terms, { path: key, direction: terms.at(-1)?.direction ?? 1 }]
}

export interface Condition {
  readonly path: string
  readonly value: FieldValue
}

/**
 * Alternatives, of which at least one must hold; each is a list of conditions that must all hold. An empty filter
 * matches everything.
 */
export type Filter = readonly (readonly Condition[])[]

// More than any person types, and few enough to compile and run at once.
const maximumConditions = 20

/**
 * Parses `<path>=<value>AND<path>=<value>OR…`, where AND binds tighter. AND and OR act as separators only before an
 * indexed path and its `=`, so a value may contain them; blanks around them belong to no value. A value may also be in double quotes, with `\"` and `\\` as
 * escapes.
 * @throws AppError BadRequest
 */
export function parseFilter(text: string, resource: ListResource): Filter {
  const separator = separatorBefore(resource)
  const alternatives: Condition[][] = []
  let word: string | undefined = 'OR'
  let count = 0
  for (let at = 0; word !== undefined;) {
    const { path, valueAt } = parsePath(text, at, resource)
    const { value, end } =
      text[valueAt] === '"' ? parseQuoted(text, valueAt) : parseBare(text, valueAt, separator)
    count += 1
    if (count > maximumConditions)
      throw refuse('filters', `filters may hold at most ${maximumConditions} conditions`)
    const condition = { path, value: toValue(value, path, fieldAt(resource, path).type) }
    if (word.trim() === 'OR') alternatives.push([condition])
    else alternatives.at(-1)?.push(condition)
    word = parseSeparator(text, end, separator)
    at = end + (word?.length ?? 0)
  }
  return alternatives
}

const separatorBefore = ({ fields, families = [] }: ListResource) => {
  const literal = (path: string) => path.replace(/\W/g, '\\$&')
  const names = [
    ...Object.keys(fields).map(literal),
    ...families.map(({ prefix }) => literal(prefix) + familyPart),
  ].join('|')
  return new RegExp(` *(?:AND|OR) *(?=(?:${names})=)`, 'g')
}

function parsePath(text: string, at: number, resource: ListResource) {
  const equals = text.indexOf('=', at)
  const path = text.slice(at, equals === -1 ? undefined : equals)
  if (equals !== -1 && findField(resource, path)) return { path, valueAt: equals + 1 }
  const allowed = filterPaths(resource)
  throw refuse(
    'filters',
    equals === -1
      ? `filters must have the form <path>=<value>, with AND or OR between; paths: ${allowed.join(', ')}`
      : `filters may only name ${allowed.join(', ')}`,
    { allowed },
  )
}

function parseBare(text: string, at: number, separator: RegExp) {
  separator.lastIndex = at
  const end = separator.exec(text)?.index ?? text.length
  return { value: text.slice(at, end), end }
}

function parseQuoted(text: string, at: number) {
  const quoted = /"((?:[^"\\]|\\.)*)"/sy
  quoted.lastIndex = at
  const [all, inside = ''] = quoted.exec(text) ?? []
  if (all === undefined) throw refuse('filters', 'filters has a quoted value without its closing quote')
  return { value: inside.replace(/\\(["\\])/g, '$1'), end: at + all.length }
}

/** The separator at `end`, or undefined at the end of the text. */
function parseSeparator(text: string, end: number, separator: RegExp): string | undefined {
  if (end === text.length) return undefined
  separator.lastIndex = end
  const word = separator.exec(text)
  if (word?.index === end) return word[0]
  throw refuse(
    'filters',
    'after a quoted value, filters must end, or continue with AND or OR and one of the paths',
  )
}

const booleans: Readonly<Record<string, FieldValue>> = { true: 1, false: 0 }

function toValue(text: string, path: string, type: FieldType): FieldValue {
  const value = parseValue(text, type)
  if (value !== undefined) return value
  const words = { text: 'text', integer: 'an integer', boolean: 'true or false', time: 'an RFC 3339 time' }
  throw refuse('filters', `filters must compare ${path} with ${words[type]}`)
}

function parseValue(text: string, type: FieldType): FieldValue | undefined {
  switch (type) {
    case 'text':
      return text
    case 'integer': {
      const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN
      return Number.isSafeInteger(value) ? value : undefined
    }
    case 'boolean':
      return Object.hasOwn(booleans, text) ? booleans[text] : undefined
    case 'time':
      return parseTime(text)
  }
}
