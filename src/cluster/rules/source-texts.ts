import { isMap } from 'yaml'
import type { YAMLMap } from 'yaml'
import { escapeInvisible } from '../../errors/printable.ts'
import type { Definition, Pack, Profile } from '../definition.ts'
import { findMacros, type Macro } from './macro.ts'
import type { Report } from './problem-list.ts'
import { createTextPlaces } from './text-places.ts'
import { readYaml, type YamlText } from './yaml-text.ts'

/** A text of a definition that is YAML, read. */
export interface SourceText {
  readonly place: string
  readonly role: 'values' | 'manifest'
  readonly packName: string
  /** Whose variables its macros mean; undefined: no profile uses this text, and its macros mean nothing. */
  readonly profile: Profile | undefined
  readonly content: string
  readonly macros: readonly Macro[]
  readonly yaml: YamlText
  /** Of values that could be read. */
  readonly root: YAMLMap | undefined
  /** `place:line:column` of an offset. */
  readonly at: (offset: number) => string
}

/**
 * Every YAML text of a definition, read, in the order of profiles and packs, and what is wrong with its YAML. The values
 * that a profile gives a pack stand in for all of the pack's own; where it gives none, the pack's own count.
 */
export function readSourceTexts(definition: Definition, report: Report): SourceText[] {
  const sources: SourceText[] = []
  const seen = new Set<string>()
  const folders = new Map(
    definition.packs.toReversed().map((pack) => [`${pack.name}\0${pack.version}`, pack]),
  )
  const add = (part: Pick<SourceText, 'place' | 'role' | 'packName' | 'profile' | 'content'>) => {
    // A pack named twice is reported as that; its folder is read once.
    if (seen.has(part.place)) return
    seen.add(part.place)
    sources.push(readSource(part, report))
  }
  const addFolder = (pack: Pack, profile: Profile | undefined, ownValues: Profile | undefined) => {
    const packName = pack.name
    if (pack.values !== undefined)
      add({
        place: `${pack.place}/values.yaml`,
        role: 'values',
        packName,
        profile: ownValues,
        content: pack.values,
      })
    for (const { place, content } of pack.manifests)
      add({ place, role: 'manifest', packName, profile, content })
  }
  for (const profile of definition.profiles) {
    profile.packs.forEach((pack, index) => {
      const place = `${profile.place}#spec.template.packs[${index}]`
      const isGiven = pack.values.trim() !== ''
      const packName = pack.name
      if (isGiven) add({ place: `${place}.values`, role: 'values', packName, profile, content: pack.values })
      const folder = folders.get(`${pack.name}\0${pack.tag}`)
      if (folder) addFolder(folder, profile, isGiven ? undefined : profile)
      pack.manifests.forEach(({ content }, number) =>
        add({ place: `${place}.manifests[${number}].content`, role: 'manifest', packName, profile, content }),
      )
    })
  }
  for (const pack of definition.packs) addFolder(pack, undefined, undefined)
  return sources
}

function readSource(
  part: Pick<SourceText, 'place' | 'role' | 'packName' | 'profile' | 'content'>,
  report: Report,
): SourceText {
  const at = createTextPlaces(part.place, part.content)
  const macros = findMacros(part.content)
  let documents = 0
  let root: YAMLMap | undefined
  const yaml = readYaml(part.content, macros, (document) => {
    documents += 1
    if (part.role !== 'values' || document.contents === null) return
    if (isMap(document.contents) && documents === 1) root = document.contents
    else
      report(
        'ValuesNotMapping',
        at(document.contents.range?.[0] ?? 0),
        'values must be one document of keys and values',
      )
  })
  for (const { code, offset, message } of yaml.problems) report(code, at(offset), describe(code, message))
  return { ...part, macros, yaml, root, at }
}

/** The library's words, without the marks that stood for macros. */
const describe = (code: string, message: string) =>
  code === 'YamlInvalid'
    ? `is not valid YAML: ${escapeInvisible(message.replace(/[\uE000-\uF8FF][0-9]*[\uE000-\uF8FF]*/g, '{{...}}'))}`
    : message
