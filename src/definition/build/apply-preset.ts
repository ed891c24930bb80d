import { isMap, isScalar, isSeq, parseDocument, type Document, type YAMLMap } from 'yaml'
import type { Preset } from '../definition.ts'
import { findMacros, maskMacros } from '../rules/macro.ts'
import { textOf } from '../rules/pack-values.ts'

/**
 * Values of a pack with a preset of it: what `remove` names is taken out, what `add` holds is put in, mappings into each
 * other and anything else in the place of what was there. Comments and macros stay.
 * @throws Error with the end of a sentence, where one of the texts is no YAML
 */
export function applyPreset(values: string, { remove, add }: Preset): string {
  // As one text, so that no mark of a macro means two.
  const both = `${values}\n${add}`
  const macros = findMacros(both)
  const masked = maskMacros(both, macros)
  const document = read(masked.text.slice(0, values.length), 'the values')
  const added = read(masked.text.slice(values.length + 1), 'add of the preset')
  for (const path of remove) removeAt(document.contents, path.split('.'))
  if (isMap(added.contents)) {
    if (isMap(document.contents)) merge(document.contents, added.contents)
    else document.contents = added.contents
  }
  return masked.unmask(document.toString({ lineWidth: 0 }), (index) =>
    both.slice(macros[index]?.start, macros[index]?.end),
  )
}

function read(text: string, what: string): Document {
  const document: Document = parseDocument(text, { merge: false, uniqueKeys: false, logLevel: 'silent' })
  if (document.errors.length > 0) throw new Error(`is not possible: ${what} are not valid YAML`)
  if (document.contents !== null && !isMap(document.contents))
    throw new Error(`is not possible: ${what} are not a mapping`)
  return document
}

const find = (map: YAMLMap, name: string) =>
  map.items.find(({ key }) => isScalar(key) && textOf(key) === name)

function removeAt(node: unknown, segments: readonly string[]): void {
  if (isSeq(node) && /^[0-9]{1,7}$/.test(segments[0] ?? '')) {
    const at = Number(segments[0])
    if (segments.length === 1) node.items.splice(at, 1)
    else removeAt(node.items[at], segments.slice(1))
    return
  }
  if (!isMap(node)) return
  // A key may hold dots: of those that fit, the shortest.
  for (let end = 1; end <= segments.length; end += 1) {
    const pair = find(node, segments.slice(0, end).join('.'))
    if (!pair) continue
    if (end === segments.length) node.items.splice(node.items.indexOf(pair), 1)
    else removeAt(pair.value, segments.slice(end))
    return
  }
}

function merge(target: YAMLMap, source: YAMLMap): void {
  for (const pair of source.items) {
    const present = isScalar(pair.key) ? find(target, textOf(pair.key)) : undefined
    if (!present) target.items.push(pair)
    else if (isMap(present.value) && isMap(pair.value)) merge(present.value, pair.value)
    else present.value = pair.value
  }
}
