import { isMap, isScalar, isSeq } from 'yaml'
import type { Document, YAMLMap } from 'yaml'
import type { Pack } from '../definition.ts'
import { textOf } from './pack-values.ts'
import type { OnDocument } from './source-texts.ts'

const containerLists = new Set(['containers', 'initContainers', 'ephemeralContainers'])

/** The images that the texts of a definition name, found while its texts are checked. */
export interface ImageFinder {
  readonly look: OnDocument
  /**
   * The images of a pack: `pack.content.images[].image` of its values, and the containers of any workload in its
   * manifests. As they are written, macros in them left alone; sorted by code unit, each once. Texts that are no YAML
   * name none, and aliases are not followed.
   */
  imagesOf(pack: Pack): string[]
}

export function createImageFinder(): ImageFinder {
  const byPlace = new Map<string, Set<string>>()
  return {
    look({ place, role, content }, document, unmask) {
      if (!content.includes('image')) return
      const images = byPlace.get(place) ?? new Set<string>()
      if (role === 'values') findListed(document, images, unmask)
      else if (content.includes('ontainers')) findContainers(document, images, unmask)
      if (images.size > 0) byPlace.set(place, images)
    },
    imagesOf({ place, manifests }) {
      const places = [`${place}/values.yaml`, ...manifests.map((manifest) => manifest.place)]
      return [...new Set(places.flatMap((each) => [...(byPlace.get(each) ?? [])]))].sort()
    },
  }
}

type Unmask = (text: string) => string

function findListed(document: Document, images: Set<string>, unmask: Unmask): void {
  let node: unknown = document.contents
  for (const key of ['pack', 'content', 'images']) node = isMap(node) ? valueAt(node, key) : undefined
  if (isSeq(node)) addImages(node.items, images, unmask)
}

function findContainers(document: Document, images: Set<string>, unmask: Unmask): void {
  const nodes: unknown[] = [document.contents]
  while (nodes.length > 0) {
    const node = nodes.pop()
    if (isSeq(node)) nodes.push(...node.items)
    if (!isMap(node)) continue
    for (const { key, value } of node.items) {
      if (isScalar(key) && containerLists.has(textOf(key)) && isSeq(value))
        addImages(value.items, images, unmask)
      nodes.push(value)
    }
  }
}

function addImages(items: readonly unknown[], images: Set<string>, unmask: Unmask): void {
  for (const item of items) {
    const image = isMap(item) ? valueAt(item, 'image') : undefined
    if (isScalar(image) && typeof image.value === 'string' && image.value !== '')
      images.add(unmask(image.value))
  }
}

function valueAt(map: YAMLMap, name: string): unknown {
  return map.items.find(({ key }) => isScalar(key) && textOf(key) === name)?.value
}
