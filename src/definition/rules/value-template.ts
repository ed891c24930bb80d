import { findFormat } from './formats.ts'
import type { Patterns } from './pattern.ts'
import type { Work } from './variable-rule.ts'

/** A rule of schema.yaml for a value: `{{ required | format "${number:[1-9]}" | hints "one" "two" }}`. */
export interface ValueTemplate {
  readonly isRequired: boolean
  readonly isReadOnly: boolean
  /** Why a value is refused, as the end of a sentence that begins with its name; undefined if it is accepted. */
  readonly refuse: (value: string, work: Work) => string | undefined
}

interface Slot {
  readonly type: string
  readonly regex: string | undefined
  readonly range: readonly [low: number, high: number] | undefined
  readonly list: readonly string[] | undefined
}

const token = /\s*(?:([A-Za-z]+)|"((?:[^"\\]|\\[^])*)"|(\|))\s*/y

/**
 * Parses a template of schema.yaml, in the form that the documentation of pack constraints describes.
 * @returns the template, or why it is malformed, as the end of a sentence
 */
export function parseTemplate(text: string, patterns: Patterns): ValueTemplate | string {
  const [, inside] = /^\s*\{\{([^]*)\}\}\s*$/.exec(text) ?? []
  if (inside === undefined) return 'is not written as {{ ... }}'
  const words = new Set<string>()
  const formats: (string | Slot)[][] = []
  let word = ''
  token.lastIndex = 0
  for (let at = 0; at < inside.trimEnd().length; at = token.lastIndex) {
    token.lastIndex = at
    const [whole, name, quoted, pipe] = token.exec(inside) ?? []
    if (whole === undefined) return 'cannot be read'
    if (pipe !== undefined) word = ''
    else if (name !== undefined) words.add((word = name))
    else if (word === 'format') {
      const format = readFormat((quoted ?? '').replaceAll('\\"', '"'))
      if (typeof format === 'string') return format
      const refused = format.flatMap((part) => refusedPattern(part, patterns) ?? [])[0]
      if (refused !== undefined) return refused
      formats.push(format)
    }
  }
  for (const each of words)
    if (!['required', 'readonly', 'format', 'hints'].includes(each)) return `has the unknown word ${each}`
  return {
    isRequired: words.has('required'),
    isReadOnly: words.has('readonly'),
    refuse: (value, work) => formats.map((format) => refuseBy(format, value, patterns, work)).find(Boolean),
  }
}

/** Parses texts and slots: `${type}`, `${type:/regex/}`, `${number:[1-9]}`, `${list:[a,b]}`. */
function readFormat(text: string): (string | Slot)[] | string {
  const parts: (string | Slot)[] = []
  const start = /\$\{([A-Za-z0-9]+)(:\/|:\[|\})/y
  for (let at = 0; at < text.length;) {
    const next = text.indexOf('${', at)
    if (next !== at) {
      parts.push(text.slice(at, next === -1 ? undefined : next))
      if (next === -1) break
    }
    start.lastIndex = next
    const [, name = '', opening] = start.exec(text) ?? []
    if (opening === undefined)
      return 'has a format that is not written as ${type}, ${type:/regex/} or ${type:[...]}'
    const type = name.toLowerCase()
    if (!types.has(type)) return `has the unknown format ${name}`
    const from = start.lastIndex
    const closing = opening === ':/' ? '/}' : opening === ':[' ? ']}' : ''
    const end = closing === '' ? from : text.indexOf(closing, from)
    if (end === -1) return `has a format that does not end with ${closing}`
    const argument = text.slice(from, end)
    const numbers = /^\s*(-?[0-9.]+)\s*-\s*(-?[0-9.]+)\s*$/.exec(argument)
    parts.push({
      type,
      regex: opening === ':/' ? argument : undefined,
      range:
        opening === ':[' && numbers && type === 'number'
          ? [Number(numbers[1]), Number(numbers[2])]
          : undefined,
      list: opening === ':[' && type === 'list' ? argument.split(',').map((each) => each.trim()) : undefined,
    })
    at = end + closing.length
  }
  return parts
}

const types = new Set([
  'string',
  'password',
  'list',
  'bool',
  'number',
  'boolean',
  'version',
  'ipv4',
  'ipv4cidr',
  'ipv6',
  'base64',
])

function refusedPattern(part: string | Slot, patterns: Patterns): string | undefined {
  const refusal =
    typeof part === 'string' || part.regex === undefined ? undefined : patterns.find(part.regex).refusal
  return refusal === undefined ? undefined : `has a regex that ${refusal}`
}

function refuseBy(
  parts: readonly (string | Slot)[],
  value: string,
  patterns: Patterns,
  work: Work,
): string | undefined {
  let rest = value
  for (const [index, part] of parts.entries()) {
    if (typeof part === 'string') {
      if (!rest.startsWith(part)) return `must contain "${part}" where its format has it`
      rest = rest.slice(part.length)
      continue
    }
    // A slot ends where the text that follows it in the format first occurs.
    const next = parts[index + 1]
    const end = typeof next === 'string' ? rest.indexOf(next) : rest.length
    if (end === -1) return `must contain "${typeof next === 'string' ? next : ''}" where its format has it`
    const refusal = refuseSlot(part, rest.slice(0, end), patterns, work)
    if (refusal !== undefined) return refusal
    rest = rest.slice(end)
  }
  return rest === '' ? undefined : 'has text after what its format allows'
}

function refuseSlot(
  { type, regex, range, list }: Slot,
  value: string,
  patterns: Patterns,
  work: Work,
): string | undefined {
  if (list && !list.includes(value)) return `must be one of ${list.join(', ')}`
  const format = findFormat(type === 'bool' ? 'boolean' : type)
  // Packs write versions with or without a v.
  if (format && !format.accepts(type === 'version' ? value.replace(/^v/, '') : value))
    return `must be ${format.expected}`
  if (range && (Number(value) < range[0] || Number(value) > range[1]))
    return `must be a number from ${range[0]} to ${range[1]}`
  if (regex === undefined) return undefined
  const pattern = patterns.find(regex)
  if (pattern.refusal !== undefined) return undefined
  work.steps -= pattern.stepsFor(value)
  if (work.steps < 0) return 'is too long for its regex, together with all earlier values'
  return pattern.isFoundIn(value) ? undefined : `must match the regex ${regex}`
}
