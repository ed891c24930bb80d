import { isMap } from 'yaml'
import type { Document, YAMLMap } from 'yaml'
import { escapeInvisible } from '../../base/printable.ts'
import type { Definition } from '../definition.ts'
import { hasOtherBraces } from './macro.ts'
import type { Report } from './problem-list.ts'
import { gatherParts, type SourcePart } from './source-parts.ts'
import { createTextPlaces } from './text-places.ts'
import { readYaml, type YamlText } from './yaml-text.ts'

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
