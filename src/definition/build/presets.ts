import { isMap, isScalar, isSeq, parseDocument, type Document, type YAMLMap } from 'yaml'
import type { Preset } from '../definition.ts'
import { findMacros, maskMacros } from '../rules/macro.ts'
import { textOf } from '../rules/pack-values.ts'
import type { Static } from 'typebox'
import type { ProfileFile } from '../format/format.ts'

/**
 * Applies a preset to the values of its pack: the paths of `remove` are removed, then `add` is merged into the values.
 * Mappings are merged; any other node replaces the existing one. Comments and macros are kept.
 * @throws Error if one of the texts is not a YAML mapping; the message continues a sentence whose subject is the preset
 */
export function applyPreset(values: string, { remove, add }: Preset): string {
  // As one text, so that every macro has a mark of its own.
  const both = `${values}\n${add}`
  const macros = findMacros(both)
  const masked = maskMacros(both, macros)
  const document = parseMapping(masked.text.slice(0, values.length), 'the text of the values')
  const added = parseMapping(masked.text.slice(values.length + 1), 'the text of add')
  for (const path of remove) removeAt(document.contents, path.split('.'))
  if (isMap(added.contents)) {
    if (isMap(document.contents)) merge(document.contents, added.contents)
    else document.contents = added.contents
  }
  return masked.unmask(document.toString({ lineWidth: 0 }), (index) =>
    both.slice(macros[index]?.start, macros[index]?.end),
  )
}

function parseMapping(text: string, what: string): Document {
  // All scalars as they are written: numbers of other readers have more digits, and words of theirs are no text.
  const options = { schema: 'failsafe', merge: false, uniqueKeys: false, logLevel: 'silent' } as const
  const document: Document = parseDocument(text, options)
  if (document.errors.length > 0) throw new Error(`cannot be applied: ${what} is not valid YAML`)
  if (document.contents !== null && !isMap(document.contents))
    throw new Error(`cannot be applied: ${what} is not a mapping`)
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
  // A key may contain dots; the shortest key that matches is taken.
  for (let end = 1; end <= segments.length; end += 1) {
    const pair = find(node, segments.slice(0, end).join('.'))
    if (!pair) continue
    if (end === segments.length) node.items.splice(node.items.indexOf(pair), 1)
    else removeAt(pair.value, segments.slice(end))
    return
  }
}

function merge(target: YAMLMap, source: YAMLMap): void {
  // Of equal keys the first, as `find`; in time that both are long.
  const known = new Map(
    target.items
      .toReversed()
      .flatMap((pair) => (isScalar(pair.key) ? [[textOf(pair.key), pair] as const] : [])),
  )
  for (const pair of source.items) {
    const name = isScalar(pair.key) ? textOf(pair.key) : undefined
    const present = name === undefined ? undefined : known.get(name)
    if (!present) {
      target.items.push(pair)
      if (name !== undefined) known.set(name, pair)
    } else if (isMap(present.value) && isMap(pair.value)) merge(present.value, pair.value)
    else present.value = pair.value
  }
}

/** The part of a pack folder that presets need. */
export interface PresetFolder {
  readonly name: string
  readonly version: string
  readonly values: string
  readonly presets: readonly Preset[]
}

/** The presets to apply, and the profiles and packs that they belong to. */
interface PresetOptions {
  /** `PACK:NAME` each. */
  readonly requested: readonly string[]
  readonly folders: readonly PresetFolder[]
  /** The values of their packs are replaced when a preset is applied. */
  readonly profiles: readonly Static<typeof ProfileFile>[]
  readonly report: (place: string, code: string, message: string) => void
}

/** Applies presets to the values that profiles give their packs or, if a profile gives none, to the values of the pack folder. */
export function applyPresets({ requested, folders, profiles, report }: PresetOptions): void {
  const groups = new Map<string, string>()
  for (const argument of requested) {
    const colon = argument.indexOf(':')
    const [name, wanted] = [argument.slice(0, colon), argument.slice(colon + 1)]
    const say = (message: string) => report(`--preset ${argument}`, 'PresetInvalid', message)
    if (colon < 1) {
      say('must be written as PACK:NAME')
      continue
    }
    const entries = profiles.flatMap(({ spec }) => spec.template.packs.filter((pack) => pack.name === name))
    const [first, ...more] = folders.filter((folder) => folder.name === name)
    if (entries.length === 0 || first === undefined) {
      say(
        first === undefined
          ? `names a pack without a folder; give it with --pack`
          : 'names a pack that no profile contains',
      )
      continue
    }
    for (const entry of entries) {
      const folder = [first, ...more].find(({ version }) => version === entry.tag) ?? first
      const preset = folder.presets.find((each) => each.name === wanted)
      if (preset === undefined) {
        const known = folder.presets.map((each) => each.name)
        say(
          `is not a preset of ${name} ${folder.version}, which has ${known.length > 0 ? known.join(', ') : 'no presets'}`,
        )
        break
      }
      const group = preset.group === '' ? undefined : groups.get(`${name}\0${preset.group}`)
      if (group !== undefined && group !== wanted) {
        say(`is in the same group (${preset.group}) as ${group}; choose one of them`)
        break
      }
      groups.set(`${name}\0${preset.group}`, wanted)
      const values = (entry.values ?? '').trim() === '' ? folder.values : (entry.values ?? '')
      try {
        entry.values = applyPreset(values, preset)
      } catch (error) {
        say((error as Error).message)
        break
      }
    }
  }
}
