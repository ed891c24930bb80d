import { isMap } from 'yaml'
import type { Document, YAMLMap } from 'yaml'
import { escapeInvisible } from '../../base/printable.ts'
import type { Definition } from '../definition.ts'
import { hasOtherBraces } from './macro.ts'
import type { Report } from './problem-list.ts'
import { gatherParts, type SourcePart } from './source-parts.ts'
import { createTextPlaces } from './text-places.ts'
import { readYaml, type YamlText } from './yaml-text.ts'

/** A text of a definition that is YAML, read. */
export interface SourceText extends SourcePart {
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
  text: Pick<SourceText, 'place' | 'role' | 'content' | 'isTemplate'>,
  document: Document,
  unmask: (text: string) => string,
) => void

/** Every YAML text of a definition, read, in the order of profiles and packs, and what is wrong with its YAML. */
export function readSourceTexts(
  definition: Definition,
  report: Report,
  onDocument: OnDocument = () => undefined,
): SourceText[] {
  const parts = gatherParts(definition)
  // A tree takes twenty times the memory of its text, so only trees stay that a macro leads into.
  const isLedInto = createLeads(parts)
  return parts.map((part) => readSource(part, isLedInto(part.packName), report, onDocument))
}

/** Whether a macro may mean values of a pack. Names may hold dots: `a.b.c` means values of a, of a.b or of a.b.c. */
function createLeads(parts: readonly SourcePart[]): (packName: string) => boolean {
  const longest = parts.reduce((most, { packName }) => Math.max(most, packName.length), 0)
  const leads = new Set<string>()
  const macros = parts.flatMap((part) => part.macros)
  for (const { kind, name } of macros.flatMap(({ references }) => references)) {
    if (kind !== 'pack') continue
    for (let end = name.indexOf('.'); end >= 0 && end <= longest; end = name.indexOf('.', end + 1))
      leads.add(name.slice(0, end))
    if (name.length <= longest) leads.add(name)
  }
  return (packName) => leads.has(packName)
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

/** The library's words, without the marks that stood for macros. */
const describe = (code: string, message: string) =>
  code === 'YamlInvalid'
    ? `is not valid YAML: ${escapeInvisible(message.replace(/[\uE000-\uF8FF][0-9]*[\uE000-\uF8FF]*/g, '{{...}}'))}`
    : message
