import { isMap } from 'yaml'
import type { Document, YAMLMap } from 'yaml'
import { escapeInvisible } from '../../errors/printable.ts'
import type { Definition, Pack, Profile } from '../definition.ts'
import { findMacros, hasOtherBraces, type Macro } from './macro.ts'
import type { Report } from './problem-list.ts'
import { createTextPlaces } from './text-places.ts'
import { readYaml, type YamlText } from './yaml-text.ts'

/** A text of a definition that is YAML, read. */
export interface SourceText {
  readonly place: string
  readonly role: 'values' | 'manifest'
  readonly packName: string
  /** Of that pack. */
  readonly layer: string
  /** Whose variables its macros mean; undefined: no profile uses this text, and its macros mean nothing. */
  readonly profile: Profile | undefined
  readonly content: string
  readonly macros: readonly Macro[]
  /**
   * A manifest that is a Go template over the values of its pack: it holds `{{` that belongs to no macro. It is YAML only
   * after rendering, so `yaml` tells no problems of it, and no places of macros.
   */
  readonly isTemplate: boolean
  readonly yaml: YamlText
  /** Of values that could be read and that a macro may mean. */
  readonly root: YAMLMap | undefined
  /** `place:line:column` of an offset. */
  readonly at: (offset: number) => string
}

/** Sees each document that has no errors while it is there; `unmask` writes the macros of a text of it again. */
export type OnDocument = (
  text: Pick<SourceText, 'place' | 'role' | 'content'>,
  document: Document,
  unmask: (text: string) => string,
) => void

/**
 * Every YAML text of a definition, read, in the order of profiles and packs, and what is wrong with its YAML. The values
 * that a profile gives a pack stand in for all of the pack's own; where it gives none, the pack's own count.
 */
export function readSourceTexts(
  definition: Definition,
  report: Report,
  onDocument: OnDocument = () => undefined,
): SourceText[] {
  const parts: Part[] = []
  const seen = new Set<string>()
  const folders = new Map(
    definition.packs.toReversed().map((pack) => [`${pack.name}\0${pack.version}`, pack]),
  )
  const add = (part: Omit<Part, 'macros'>) => {
    // A pack named twice is reported as that; its folder is read once.
    if (seen.has(part.place)) return
    seen.add(part.place)
    parts.push({ ...part, macros: findMacros(part.content) })
  }
  const addFolder = (pack: Pack, layer: string, profile?: Profile, ownValues?: Profile) => {
    const packName = pack.name
    if (pack.values !== undefined)
      add({
        place: `${pack.place}/values.yaml`,
        role: 'values',
        packName,
        layer,
        profile: ownValues,
        content: pack.values,
      })
    for (const { place, content } of pack.manifests)
      add({ place, role: 'manifest', packName, layer, profile, content })
  }
  for (const profile of definition.profiles) {
    profile.packs.forEach((pack, index) => {
      const place = `${profile.place}#spec.template.packs[${index}]`
      const isGiven = pack.values.trim() !== ''
      const { name: packName, layer } = pack
      const part = { packName, layer, profile }
      if (isGiven) add({ ...part, place: `${place}.values`, role: 'values', content: pack.values })
      const folder = folders.get(`${pack.name}\0${pack.tag}`)
      if (folder) addFolder(folder, layer, profile, isGiven ? undefined : profile)
      pack.manifests.forEach(({ content }, number) =>
        add({ ...part, place: `${place}.manifests[${number}].content`, role: 'manifest', content }),
      )
    })
  }
  for (const pack of definition.packs) addFolder(pack, pack.layer)
  // A tree takes twenty times the memory of its text, so only trees stay that a macro leads into.
  const isLedInto = createLeads(parts)
  return parts.map((part) => readSource(part, isLedInto(part.packName), report, onDocument))
}

type Part = Pick<SourceText, 'place' | 'role' | 'packName' | 'layer' | 'profile' | 'content' | 'macros'>

/** Whether a macro may mean values of a pack. Names may hold dots: `a.b.c` means values of a, of a.b or of a.b.c. */
function createLeads(parts: readonly Part[]): (packName: string) => boolean {
  const longest = parts.reduce((most, { packName }) => Math.max(most, packName.length), 0)
  const leads = new Set<string>()
  for (const { kind, name } of parts.flatMap(({ macros }) => macros)) {
    if (kind !== 'pack') continue
    for (let end = name.indexOf('.'); end >= 0 && end <= longest; end = name.indexOf('.', end + 1))
      leads.add(name.slice(0, end))
    if (name.length <= longest) leads.add(name)
  }
  return (packName) => leads.has(packName)
}

function readSource(part: Part, isKept: boolean, report: Report, onDocument: OnDocument): SourceText {
  const { macros } = part
  const at = createTextPlaces(part.place, part.content)
  const isTemplate = part.role === 'manifest' && hasOtherBraces(part.content, macros)
  let documents = 0
  let root: YAMLMap | undefined
  const yaml = readYaml(part.content, macros, (document, { unmask }) => {
    documents += 1
    onDocument(part, document, (text) =>
      unmask(text, (index) => part.content.slice(macros[index]?.start, macros[index]?.end)),
    )
    if (part.role !== 'values' || document.contents === null) return
    if (isMap(document.contents) && documents === 1) {
      if (isKept) root = document.contents
    } else
      report(
        'ValuesNotMapping',
        at(document.contents.range?.[0] ?? 0),
        'values must be one document of keys and values',
      )
  })
  if (isTemplate) return { ...part, isTemplate, yaml: { ...yaml, problems: [], sites: [] }, root, at }
  for (const { code, offset, message } of yaml.problems) report(code, at(offset), describe(code, message))
  return { ...part, isTemplate, yaml, root, at }
}

/** The library's words, without the marks that stood for macros. */
const describe = (code: string, message: string) =>
  code === 'YamlInvalid'
    ? `is not valid YAML: ${escapeInvisible(message.replace(/[\uE000-\uF8FF][0-9]*[\uE000-\uF8FF]*/g, '{{...}}'))}`
    : message
