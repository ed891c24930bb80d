import { isMap, isScalar, isSeq } from 'yaml'
import type { Document, YAMLMap } from 'yaml'
import type { Pack } from '../definition.ts'
import { findMacros } from './macro.ts'
import { textOf } from './pack-values.ts'
import { readYaml } from './yaml-text.ts'

const containerLists = new Set(['containers', 'initContainers', 'ephemeralContainers'])
// What a document must hold somewhere to name an image; most of the largest manifests need not be read at all.
const mayNameImages = /["']?image["']?\s*:/

/**
 * The images of a pack: `pack.content.images[].image` of its values, and the containers of any workload in its
 * manifests. As they are written, macros in them left alone; sorted by code unit, each once. Texts that are no YAML
 * name none, and aliases are not followed.
 */
export function listImages(pack: Pack): string[] {
  const images = new Set<string>()
  if (pack.values !== undefined) {
    read(pack.values, (document, unmask) => {
      let node: unknown = document.contents
      for (const key of ['pack', 'content', 'images']) node = isMap(node) ? valueAt(node, key) : undefined
      if (isSeq(node)) addImages(node.items, images, unmask)
    })
  }
  for (const { content } of pack.manifests) {
    if (content.includes('ontainers'))
      read(content, (document, unmask) => findContainers(document, images, unmask))
  }
  return [...images].sort()
}

type Unmask = (text: string) => string

function read(text: string, onDocument: (document: Document, unmask: Unmask) => void): void {
  for (const part of splitDocuments(text)) {
    if (!mayNameImages.test(part)) continue
    const macros = findMacros(part)
    const waiting: Document[] = []
    const { masked } = readYaml(part, macros, (document) => waiting.push(document))
    const written = (index: number) => part.slice(macros[index]?.start, macros[index]?.end)
    for (const document of waiting) onDocument(document, (image) => masked.unmask(image, written))
  }
}

/** A line that begins with `---` begins a document wherever it stands, inside of scalars too (YAML 1.2, c-forbidden). */
function splitDocuments(text: string): string[] {
  return text.split(/^(?=---(?:[ \t\r]|$))/m)
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
