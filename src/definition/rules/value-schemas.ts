import { isMap, isScalar, isSeq, parseDocument, type Document } from 'yaml'
import { printable } from '../../base/printable.ts'
import type { Definition, Pack } from '../definition.ts'
import { textOf } from './pack-values.ts'
import { createPatterns, type Patterns } from './pattern.ts'
import type { Report } from './problem-list.ts'
import type { OnDocument } from './source-texts.ts'
import { readTemplate, type ValueTemplate } from './value-template.ts'

interface Rule {
  readonly path: string
  readonly template: ValueTemplate
}

interface Held {
  readonly rules: readonly Rule[]
  /** Whether the profile gives other values than the pack has. */
  readonly isGiven: boolean
  readonly folder: Pack
}

// Seconds at worst, of a process that has them.
const stepLimit = 200_000_000

/**
 * Holds values against schema.yaml of their packs, as their documents come by. What a profile gives is an error where it is
 * refused; what a pack has by itself, which its author left for others to fill in, a warning. A value that holds a macro is
 * not known yet and only has to be there.
 */
export function createValueSchemas({ profiles, packs }: Definition, report: Report): OnDocument {
  const patterns = createPatterns()
  const work = { steps: stepLimit }
  const held = new Map<string, Held>()
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
      held.set(place, { rules, isGiven, folder })
    }

  return ({ place, role }, document, unmask) => {
    const own = role === 'values' ? held.get(place) : undefined
    if (!own) return
    const say = (path: string, message: string) =>
      report(
        'PackValueInvalid',
        place,
        `${printable(path)} ${printable(message)}`,
        own.isGiven ? 'error' : 'warning',
      )
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
      if (template.isReadOnly && own.isGiven && isChanged(own.folder, path, texts.map(unmask)))
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
  const document = read(content)
  if (!document || !isMap(document.contents)) {
    report('PackSchemaInvalid', place, 'is not a mapping of paths to schemas; nothing is checked by it')
    return []
  }
  return document.contents.items.flatMap(({ key, value }): Rule[] => {
    const path = isScalar(key) ? textOf(key) : ''
    const schema = isMap(value) ? value.get('schema') : undefined
    const template = typeof schema === 'string' ? readTemplate(schema, patterns) : 'has no schema'
    if (typeof template !== 'string') return [{ path, template }]
    report(
      'PackSchemaInvalid',
      `${place}#${path}`,
      `${printable(path)} ${printable(template)}; it is not checked`,
    )
    return []
  })
}

function isChanged({ values = '' }: Pack, path: string, texts: readonly string[]): boolean {
  const document = read(values)
  if (!document) return false
  const before = valuesAt(document.contents, path.split('.')).flatMap((node) =>
    isScalar(node) ? [textOf(node)] : [],
  )
  return before.join('\0') !== texts.join('\0')
}

function read(content: string): Document | undefined {
  const document = parseDocument(content, { merge: false, uniqueKeys: false, logLevel: 'silent' })
  return document.errors.length > 0 ? undefined : document
}

/** What stands at a path; `$[]` is each item of a list. A key may hold dots: of those that fit, the shortest. */
function valuesAt(node: unknown, segments: readonly string[]): unknown[] {
  const [segment] = segments
  if (segment === undefined) return isSeq(node) ? node.items : [node]
  if (segment === '$[]')
    return isSeq(node) ? node.items.flatMap((item) => valuesAt(item, segments.slice(1))) : []
  if (!isMap(node)) return []
  for (let end = 1; end <= segments.length; end += 1) {
    const name = segments.slice(0, end).join('.')
    const pair = node.items.find(({ key }) => isScalar(key) && textOf(key) === name)
    if (pair) return valuesAt(pair.value, segments.slice(end))
  }
  return []
}
