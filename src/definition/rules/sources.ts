import { isMap, type Document, type YAMLMap } from 'yaml'
import { escapeInvisible } from '../../base/printable.ts'
import type { Definition, Pack, Profile } from '../definition.ts'
import { hasOtherBraces, findMacros, type Macro } from './macro.ts'
import type { Report } from './problem-list.ts'
import { createTextPlaces } from './plain-values.ts'
import { readYaml, type YamlText } from './yaml-text.ts'

/** A YAML text of a definition, and the profile and pack that use it. */
interface SourcePart {
  readonly place: string
  readonly role: 'values' | 'manifest'
  readonly packName: string
  /** Layer of that pack. */
  readonly layer: string
  /** The profile whose variables its macros use; undefined if no profile uses this text, and its macros are ignored. */
  readonly profile: Profile | undefined
  /** Display names of the packs that use it: more than one if the profile contains the pack more than once. */
  readonly displayNames: ReadonlySet<string>
  readonly content: string
  readonly macros: readonly Macro[]
}

/** A key that identifies the folder of a pack. */
export const folderKey = (name: string, version: string): string => `${name}\0${version}`

/** Folders by `folderKey`. If two folders have the same key, which is reported elsewhere, the first one counts. */
export const foldersByKey = (packs: readonly Pack[]): Map<string, Pack> =>
  new Map(packs.toReversed().map((pack) => [folderKey(pack.name, pack.version), pack]))

/**
 * Every YAML text of a definition, each once: in the order of profiles and packs, then the unused ones. Values that a
 * profile gives a pack replace all values of the pack folder; if it gives none, the values of the folder apply.
 */
function gatherParts({ profiles, packs }: Definition): SourcePart[] {
  const parts = new Map<string, SourcePart & { readonly displayNames: Set<string> }>()
  const add = (part: Omit<SourcePart, 'macros' | 'displayNames'>, displayName = '') => {
    const { place, profile } = part
    const known = parts.get(place)
    const displayNames = known?.displayNames ?? new Set()
    if (known === undefined) parts.set(place, { ...part, displayNames, macros: findMacros(part.content) })
    // A pack in two profiles is reported elsewhere; its texts belong to the first profile.
    if (profile !== undefined && profile === (known ?? part).profile) displayNames.add(displayName)
  }

  const folders = foldersByKey(packs)
  for (const profile of profiles) {
    profile.packs.forEach(({ name, displayName, tag, layer }, index) => {
      const { values, manifests } = textsOfPack(profile, index, folders.get(folderKey(name, tag)))
      const part = { packName: name, layer, profile }
      if (values) add({ ...part, ...values, role: 'values' }, displayName)
      for (const text of manifests) add({ ...part, ...text, role: 'manifest' }, displayName)
    })
  }
  // Texts that no profile uses, and values that a profile replaces.
  for (const pack of packs)
    for (const text of textsOf(pack))
      add({ ...text, packName: pack.name, layer: pack.layer, profile: undefined })
  return [...parts.values()]
}

function textsOf({ place, values, manifests }: Pack): Pick<SourcePart, 'place' | 'role' | 'content'>[] {
  return [
    ...(values === undefined
      ? []
      : [{ place: `${place}/values.yaml`, role: 'values' as const, content: values }]),
    ...manifests.map((manifest) => ({ ...manifest, role: 'manifest' as const })),
  ]
}

/** The texts of one pack of a profile: the values that apply, then the manifests of the folder, then those in the profile. */
export function textsOfPack(profile: Profile, index: number, folder: Pack | undefined) {
  const pack = profile.packs[index]
  const place = `${profile.place}#spec.template.packs[${index}]`
  const given = pack?.values.trim() ? { place: `${place}.values`, content: pack.values } : undefined
  const own = folder ? textsOf(folder) : []
  return {
    values: given ?? own.find(({ role }) => role === 'values'),
    manifests: [
      ...own.filter(({ role }) => role === 'manifest'),
      ...(pack?.manifests ?? []).map(({ content }, number) => ({
        place: `${place}.manifests[${number}].content`,
        content,
      })),
    ],
  }
}

/** A parsed YAML text of a definition. */
export interface SourceText extends SourcePart {
  /**
   * Whether it is a manifest that is a Go template over the values of its pack: it contains `{{` outside macros. It is YAML
   * only after rendering, so `yaml` has no problems and no sites.
   */
  readonly isTemplate: boolean
  readonly yaml: YamlText
  /** The mapping of values, if they could be parsed and a macro may refer to them. */
  readonly root: YAMLMap | undefined
  /** `place:line:column` of an offset. */
  readonly at: (offset: number) => string
}

/** Called with each document that has no errors, which may not be kept. `unmask` restores the macros in a text of it. */
export type OnDocument = (
  text: Pick<SourceText, 'place' | 'role' | 'content' | 'isTemplate'>,
  document: Document,
  unmask: (text: string) => string,
) => void

/** Parses every YAML text of a definition, in the order of profiles and packs, and reports problems of its YAML. */
export function parseSourceTexts(
  definition: Definition,
  report: Report,
  onDocument: OnDocument = () => undefined,
): SourceText[] {
  const parts = gatherParts(definition)
  // A tree takes twenty times the memory of its text, so only trees to which a macro may refer are kept.
  const isReferenced = createReferenceTest(parts)
  return parts.map((part) => readSource(part, isReferenced(part.packName), report, onDocument))
}

/** Whether a macro may refer to values of a pack. Names may contain dots: `a.b.c` may refer to pack a, a.b or a.b.c. */
function createReferenceTest(parts: readonly SourcePart[]): (packName: string) => boolean {
  const longest = parts.reduce((most, { packName }) => Math.max(most, packName.length), 0)
  const referenced = new Set<string>()
  const macros = parts.flatMap((part) => part.macros)
  for (const { kind, name } of macros.flatMap(({ references }) => references)) {
    if (kind !== 'pack') continue
    for (let end = name.indexOf('.'); end >= 0 && end <= longest; end = name.indexOf('.', end + 1))
      referenced.add(name.slice(0, end))
    if (name.length <= longest) referenced.add(name)
  }
  return (packName) => referenced.has(packName)
}

function readSource(part: SourcePart, isKept: boolean, report: Report, onDocument: OnDocument): SourceText {
  const { macros } = part
  const at = createTextPlaces(part.place, part.content)
  const isTemplate = part.role === 'manifest' && hasOtherBraces(part.content, macros)
  let documents = 0
  let root: YAMLMap | undefined
  const yaml = readYaml(part.content, macros, (document, { unmask }) => {
    documents += 1
    onDocument({ ...part, isTemplate }, document, (text) =>
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

/** The message of the library, with the marks of macros shown as {{...}}. */
const describe = (code: string, message: string) =>
  code === 'YamlInvalid'
    ? `is not valid YAML: ${escapeInvisible(message.replace(/[\uE000-\uF8FF][0-9]*[\uE000-\uF8FF]*/g, '{{...}}'))}`
    : message
