import { findFormat } from './formats.ts'
import { type Patterns, createPatterns } from './pattern.ts'
import type { Work } from './variables.ts'
import { isMap, isScalar, isSeq, type Document, type YAMLMap } from 'yaml'
import { printable } from '../../base/printable.ts'
import type { Definition, Pack } from '../definition.ts'
import { textOf } from './pack-values.ts'
import type { Report } from './problem-list.ts'
import type { OnDocument } from './sources.ts'
import { readYaml } from './yaml-text.ts'

/** A rule of schema.yaml for a value: `{{ required | format "${number:[1-9]}" | hints "one" "two" }}`. */
interface ValueTemplate {
  readonly isRequired: boolean
  readonly isReadOnly: boolean
  /** Why a value is refused, as the end of a sentence that begins with its name; undefined if it is accepted. */
  readonly refuse: (value: string, work: Work) => string | undefined
}

interface Slot {
  readonly type: string
  readonly regex: string | undefined
  /** As they are written: a number of JavaScript may have other digits. */
  readonly range: readonly [low: string, high: string] | undefined
  readonly list: readonly string[] | undefined
}

const token = /\s*(?:([A-Za-z]+)|"((?:[^"\\]|\\[^])*)"|(\|))\s*/y

/**
 * Parses a template of schema.yaml, in the form that the documentation of pack constraints describes.
 * @returns the template, or why it is malformed, as the end of a sentence
 */
function parseTemplate(text: string, patterns: Patterns): ValueTemplate | string {
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
        opening === ':[' && numbers && type === 'number' ? [numbers[1] ?? '', numbers[2] ?? ''] : undefined,
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
  if (range && (isLess(value, range[0]) || isLess(range[1], value)))
    return `must be a number from ${range[0]} to ${range[1]}`
  if (regex === undefined) return undefined
  const pattern = patterns.find(regex)
  if (pattern.refusal !== undefined) return undefined
  work.steps -= pattern.stepsFor(value)
  if (work.steps < 0) return 'is too long for its regex, together with all earlier values'
  return pattern.isFoundIn(value) ? undefined : `must match the regex ${regex}`
}

const whole = /^[-+]?[0-9]+$/
/** Whole numbers are compared by all their digits. */
const isLess = (one: string, other: string): boolean =>
  whole.test(one) && whole.test(other)
    ? BigInt(one.replace('+', '')) < BigInt(other.replace('+', ''))
    : Number(one) < Number(other)

interface Rule {
  readonly path: string
  readonly template: ValueTemplate
}

/** Values that a schema applies to. */
interface Checked {
  readonly rules: readonly Rule[]
  /** Whether the profile gives values that differ from the pack folder. */
  readonly isGiven: boolean
  readonly folder: Pack
}

// Some seconds at worst; this runs in a process of its own.
const stepLimit = 200_000_000

/**
 * Checks values against schema.yaml of their packs, document by document. A refused value is an error if the profile gives
 * it, and a warning if it comes from the pack itself, whose author may have left it to be filled in. The value of a macro is
 * not known yet, so a value with a macro is only checked to be present.
 */
export function createValueSchemas({ profiles, packs }: Definition, report: Report): OnDocument {
  const patterns = createPatterns()
  const work = { steps: stepLimit }
  const checked = new Map<string, Checked>()
  const rulesOf = new Map<Pack, readonly Rule[]>()
  const folders = new Map(packs.map((pack) => [`${pack.name}\0${pack.version}`, pack]))
  for (const profile of profiles)
    for (const [index, { name, tag, values }] of profile.packs.entries()) {
      const folder = folders.get(`${name}\0${tag}`)
      if (folder?.schema === undefined) continue
      const rules = rulesOf.get(folder) ?? readSchema(folder.schema, patterns, report)
      rulesOf.set(folder, rules)
      const isGiven = values.trim() !== '' && values.trim() !== folder.values?.trim()
      const place =
        values.trim() === ''
          ? `${folder.place}/values.yaml`
          : `${profile.place}#spec.template.packs[${index}].values`
      checked.set(place, { rules, isGiven, folder })
    }

  return ({ place, role }, document, unmask) => {
    const own = role === 'values' ? checked.get(place) : undefined
    if (!own) return
    const say = (path: string, message: string) =>
      report(
        'PackValueInvalid',
        place,
        `${printable(path)} ${printable(message)}`,
        own.isGiven ? 'error' : 'warning',
      )
    let before: { readonly document: Document | undefined } | undefined
    for (const { path, template } of own.rules) {
      const found = valuesAt(document.contents, path.split('.'))
      const texts = found.flatMap((node) => (isScalar(node) && node.value !== null ? [textOf(node)] : []))
      const isThere = texts.some((text) => text !== '') || found.some((node) => isMap(node) || isSeq(node))
      if (template.isRequired && !isThere) say(path, 'is required by schema.yaml of the pack')
      for (const text of texts) {
        if (text === '' || unmask(text) !== text) continue
        const refusal = template.refuse(text, work)
        if (refusal !== undefined) say(path, `${refusal} (schema.yaml of the pack)`)
      }
      if (
        template.isReadOnly &&
        own.isGiven &&
        isChanged((before ??= parsed(own.folder)).document, path, texts.map(unmask))
      )
        say(path, 'may not be changed (schema.yaml of the pack)')
    }
  }
}

/** `registry.port: { schema: '{{ format "${number}" }}' }`, one for each path. */
function readSchema(
  { place, content }: NonNullable<Pack['schema']>,
  patterns: Patterns,
  report: Report,
): Rule[] {
  const document = parse(content)
  if (!document || !isMap(document.contents)) {
    report('PackSchemaInvalid', place, 'is not a mapping of paths to schemas; it is not used')
    return []
  }
  return document.contents.items.flatMap(({ key, value }): Rule[] => {
    const path = isScalar(key) ? textOf(key) : ''
    const schema = isMap(value) ? value.get('schema') : undefined
    const template = typeof schema === 'string' ? parseTemplate(schema, patterns) : 'has no schema'
    if (typeof template !== 'string') return [{ path, template }]
    report(
      'PackSchemaInvalid',
      `${place}#${path}`,
      `${printable(path)} ${printable(template)}; the value is not checked`,
    )
    return []
  })
}

const parsed = ({ values = '' }: Pack) => ({ document: parse(values) })

function isChanged(document: Document | undefined, path: string, texts: readonly string[]): boolean {
  if (!document) return false
  const before = valuesAt(document.contents, path.split('.')).flatMap((node) =>
    isScalar(node) ? [textOf(node)] : [],
  )
  return before.join('\0') !== texts.join('\0')
}

function parse(content: string): Document | undefined {
  const documents: Document[] = []
  const { problems } = readYaml(content, [], (document) => documents.push(document))
  return problems.some(({ code }) => code !== 'YamlKeyTwice') || documents.length > 1
    ? undefined
    : documents[0]
}

const pairs = new WeakMap<YAMLMap, ReadonlyMap<string, unknown>>()

/** The value of each key, of equal keys the first: a schema may name as many paths as a mapping has keys. */
function pairsOf(map: YAMLMap): ReadonlyMap<string, unknown> {
  const known = pairs.get(map)
  if (known) return known
  const found = new Map(
    map.items.toReversed().flatMap(({ key, value }) => (isScalar(key) ? [[textOf(key), value ?? null]] : [])),
  )
  pairs.set(map, found)
  return found
}

/** The nodes at a path; `$[]` is each item of a list. A key may contain dots; the shortest key that matches is taken. */
function valuesAt(node: unknown, segments: readonly string[]): unknown[] {
  const [segment] = segments
  if (segment === undefined) return isSeq(node) ? node.items : [node]
  if (segment === '$[]')
    return isSeq(node) ? node.items.flatMap((item) => valuesAt(item, segments.slice(1))) : []
  if (!isMap(node)) return []
  for (let end = 1; end <= segments.length; end += 1) {
    const name = segments.slice(0, end).join('.')
    const value = pairsOf(node).get(name)
    if (value !== undefined) return valuesAt(value, segments.slice(end))
  }
  return []
}
