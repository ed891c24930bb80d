import type { Problem } from '../definition.ts'
import { readValues, words } from '../rules/plain-values.ts'
import { createTextPlaces } from '../rules/text-places.ts'
import { findPrototypeKey, prototypeKeyProblem } from './parse-json.ts'

/**
 * Parses a file of one document that was saved as YAML (or JSON, which is YAML too): an export, presets, the head of a definition. Unlike
 * manifests and values it is YAML 1.2, as its authors write it.
 * @param file for the places
 * @returns undefined and the problem if the text is not one YAML document
 */
export function parseYaml(file: string, text: string): { value: unknown; problems: Problem[] } {
  const refuse = (place: string, message: string) => ({
    value: undefined,
    problems: [{ code: 'YamlInvalid', severity: 'error', place, message } satisfies Problem],
  })
  const { documents, problems } = readValues(text, ({ value }) => value)
  const at = createTextPlaces(file, text)
  const [problem] = problems
  if (problem !== undefined) return refuse(at(problem.offset), `${words(problem.code)}: ${problem.message}`)
  const [document, second] = documents
  if (document === undefined) return refuse(file, 'is empty; export it again')
  if (second !== undefined)
    return refuse(at(second.offset), 'begins a second document; a file contains one profile')
  const path = findPrototypeKey(document.value)
  return path === undefined
    ? { value: document.value, problems: [] }
    : { value: undefined, problems: [prototypeKeyProblem(file, path)] }
}
