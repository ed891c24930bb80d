import type { Problem } from '../definition.ts'
import { createTextPlaces, readValues, words } from '../rules/plain-values.ts'

/**
 * Parses JSON of an archive. A key `__proto__` is a problem, since a copy of the object would change its prototype.
 * @param file member of the archive, for the places
 * @returns undefined and the problem if the text is not valid JSON
 */
export function parseJson(file: string, text: string): { value: unknown; problems: Problem[] } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { value: undefined, problems: [notJson(file, text, error as Error)] }
  }
  const path = findPrototypeKey(value)
  if (path === undefined) return { value, problems: [] }
  return { value: undefined, problems: [prototypeKeyProblem(file, path)] }
}

/** @param path of the key, as returned by `findPrototypeKey` */
const prototypeKeyProblem = (file: string, path: string): Problem => ({
  code: 'KeyForbidden',
  severity: 'error',
  place: `${file}#${path}`,
  message: 'is the key __proto__, which no export contains; remove it',
})

function notJson(file: string, text: string, { message }: Error): Problem {
  const position = /at position (\d+)/.exec(message)?.[1]
  return {
    code: 'JsonInvalid',
    severity: 'error',
    place: position === undefined ? file : createTextPlaces(file, text)(Number(position)),
    message: 'is not valid JSON from here on; export it again',
  }
}

/** Path of the first key __proto__. Without recursion, because JSON of a few megabytes may be nested a million levels deep. */
function findPrototypeKey(root: unknown): string | undefined {
  const waiting: { readonly value: object; readonly key: string; readonly parent: number }[] = []
  const add = (value: unknown, key: string, parent: number) => {
    if (typeof value === 'object' && value !== null) waiting.push({ value, key, parent })
  }
  const pathOf = (index: number): string => {
    const keys: string[] = []
    for (let at = index; at >= 0 && keys.length < 50; at = waiting[at]?.parent ?? -1)
      keys.unshift(waiting[at]?.key ?? '')
    return keys.join('').replace(/^\./, '').slice(0, 200)
  }
  add(root, '', -1)
  for (let index = 0; index < waiting.length; index++) {
    const value = waiting[index]?.value ?? {}
    if (Array.isArray(value)) value.forEach((item, place) => add(item, `[${place}]`, index))
    else {
      if (Object.hasOwn(value, '__proto__')) return `${pathOf(index)}.__proto__`.replace(/^\./, '')
      for (const [key, item] of Object.entries(value)) add(item, `.${key}`, index)
    }
  }
  return undefined
}

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
