import type { KubernetesObject } from '../../../kubernetes/client.ts'
import { listsWithKeyTwice } from '../../../kubernetes/list-keys.ts'
import { isRecord } from '../../../base/json.ts'
import { readPlain } from '../../../definition/rules/plain-values.ts'
import { mappingAt, textOf, valueAt } from './plain.ts'

/** The objects of a YAML text that is ready to be applied. */
export interface ReadObjects {
  readonly objects: readonly KubernetesObject[]
  /** Why the text cannot be applied, each as the end of a sentence; then there are no objects. */
  readonly problems: readonly string[]
}

// A file with more problems usually has one cause.
const problemLimit = 5

/** The objects of a text, the items of lists as objects of their own. */
export function readObjects(text: string): ReadObjects {
  const { documents, problems } = readPlain(text)
  const found = documents.flatMap(itemsOf)
  const wrong = [...problems, ...found.flatMap((each, index) => refuseObject(each, index))]
  if (wrong.length > 0) return { objects: [], problems: wrong.slice(0, problemLimit) }
  return { objects: found as KubernetesObject[], problems: [] }
}

/** The items of a list of any kind, as kubectl applies them. */
export function itemsOf(document: unknown): readonly unknown[] {
  const isList = isRecord(document) && textOf(document.kind)?.endsWith('List') === true
  // What a template leaves of a list without items.
  if (isList && document.kind === 'List' && (document.items ?? null) === null) return []
  return isList && Array.isArray(document.items) ? (document.items as unknown[]).flatMap(itemsOf) : [document]
}

function refuseObject(value: unknown, index: number): string[] {
  const at = `has object ${index + 1}`
  if (!isRecord(value)) return [`${at}, which is not a mapping`]
  const missing = ['apiVersion', 'kind'].find((field) => !isText(value[field]))
  if (missing !== undefined) return [`${at} without ${missing}`]
  const what = `${at}, a ${String(value.kind)},`
  const { name } = mappingAt(value, 'metadata')
  if (isText(name))
    return listsWithKeyTwice(value).map(
      ({ path, key }) =>
        `${what} ${String(name)}, whose list ${path} has ${key} twice; Kubernetes applies no such list, so leave one out`,
    )
  return isText(valueAt(value, 'metadata', 'generateName'))
    ? [`${what} with generateName; it cannot be applied again, so give it a name`]
    : [`${what} without metadata.name`]
}

const isText = (value: unknown) => typeof value === 'string' && value !== ''

const containerLists = new Set(['containers', 'initContainers', 'ephemeralContainers'])

/** The images of containers and of image volumes in objects; each once. */
export function imagesIn(objects: readonly unknown[]): string[] {
  const images = new Set<string>()
  const waiting: unknown[] = [...objects]
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (Array.isArray(value)) waiting.push(...(value as unknown[]).filter((each) => each !== undefined))
    if (!isRecord(value)) continue
    for (const [key, below] of Object.entries(value)) {
      if (below === null || typeof below !== 'object') continue
      waiting.push(below)
      if (!Array.isArray(below)) continue
      for (const item of below as unknown[]) {
        const image = containerLists.has(key)
          ? valueAt(item, 'image')
          : key === 'volumes'
            ? valueAt(item, 'image', 'reference')
            : undefined
        if (typeof image === 'string' && image.trim() !== '') images.add(image.trim())
      }
    }
  }
  return [...images].sort()
}

const isDefinition = (object: unknown) => valueAt(object, 'kind') === 'CustomResourceDefinition'

/** The names of custom resource definitions. */
export const definitionsIn = (objects: readonly unknown[]): string[] =>
  objects.filter(isDefinition).flatMap((object) => textOf(valueAt(object, 'metadata', 'name')) ?? [])

/** The versions of the API that custom resource definitions add, as `helm template --api-versions` takes them. */
export function apiVersionsIn(objects: readonly unknown[]): string[] {
  return objects.filter(isDefinition).flatMap((object) => {
    const [group, kind] = [
      textOf(valueAt(object, 'spec', 'group')),
      textOf(valueAt(object, 'spec', 'names', 'kind')),
    ]
    const versions = valueAt(object, 'spec', 'versions')
    if (!group || !kind || !Array.isArray(versions)) return []
    return (versions as unknown[]).flatMap((each) => {
      const version = textOf(valueAt(each, 'name'))
      return version ? [`${group}/${version}`, `${group}/${version}/${kind}`] : []
    })
  })
}
