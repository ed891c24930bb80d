import { isMap, isScalar, isSeq, type Document, type YAMLMap } from 'yaml'
import { printable } from '../../base/printable.ts'
import type { Definition, Pack } from '../definition.ts'
import { textOf } from './pack-values.ts'
import { createPatterns, type Patterns } from './pattern.ts'
import type { Report } from './problem-list.ts'
import type { OnDocument } from './source-texts.ts'
import { parseTemplate, type ValueTemplate } from './value-template.ts'
import { readYaml } from './yaml-text.ts'

interface Rule {
  readonly path: string
  readonly template: ValueTemplate
}

/** Values that a schema applies to. */
interface Checked {
  readonly rules: readonly Rule[]
  /** Whether the profile gives values that differ from those of the pack folder. */
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
