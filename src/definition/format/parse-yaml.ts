import { isNode, parseAllDocuments, visit, type Document, type YAMLError } from 'yaml'
import type { Problem } from '../definition.ts'
import { createTextPlaces } from '../rules/text-places.ts'
import { findPrototypeKey, prototypeKeyProblem } from './parse-json.ts'

// Exports have no aliases; a file written by hand has a few.
const aliasLimit = 100

/**
 * Parses an export that was saved as YAML (or JSON, which is YAML too).
 * @param file for the places
 * @returns undefined and the problem if the text is not one YAML document
 */
export function parseYaml(file: string, text: string): { value: unknown; problems: Problem[] } {
  const refuse = (place: string, message: string) => ({
    value: undefined,
    problems: [{ code: 'YamlInvalid', severity: 'error', place, message } satisfies Problem],
  })
  const documents = parseAllDocuments(text, { merge: true, prettyErrors: false, logLevel: 'silent' })
  const [document, second] = 'empty' in documents ? [] : documents
  if (document === undefined) return refuse(file, 'is empty; export it again')
  const at = createTextPlaces(file, text)
  const error: YAMLError | undefined = document.errors[0]
  if (error !== undefined) return refuse(at(error.pos[0]), `is not valid YAML: ${error.message}`)
  if (second !== undefined)
    return refuse(at(second.range[0]), 'begins a second document; a file contains one profile')
  let value: unknown
  try {
    const circle = findCircle(document)
    if (circle !== undefined) return refuse(at(circle), 'is an alias inside the node that it refers to')
    value = document.toJS({ maxAliasCount: aliasLimit })
  } catch (cause) {
    return refuse(file, `cannot be read: ${(cause as Error).message}`)
  }
  const path = findPrototypeKey(value)
  return path === undefined
    ? { value, problems: [] }
    : { value: undefined, problems: [prototypeKeyProblem(file, path)] }
}

/** Position of an alias inside the node that it refers to; as an object, that node would contain itself. */
function findCircle(document: Document): number | undefined {
  let offset: number | undefined
  visit(document, {
    Alias(_key, { source, range }, path) {
      if (!path.some((each) => isNode(each) && 'anchor' in each && each.anchor === source)) return undefined
      offset = range?.[0] ?? 0
      return visit.BREAK
    },
  })
  return offset
}
