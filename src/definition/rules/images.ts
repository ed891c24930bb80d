import { isMap, isScalar, isSeq } from 'yaml'
import type { Document, YAMLMap } from 'yaml'
import type { Definition, Pack, Profile } from '../definition.ts'
import { guessInValues, guessInLines, type GuessedImage } from './image-guess.ts'
import { findMacros, hasOtherBraces } from './macro.ts'
import { textOf } from './pack-values.ts'
import { textsOfPack } from './source-parts.ts'
import { parseSourceTexts, type OnDocument } from './source-texts.ts'

const containerLists = new Set(['containers', 'initContainers', 'ephemeralContainers'])

/** The images of a pack as they are written, with macros; sorted by code unit, each once. */
export interface PackImages {
  /** Images that it lists (`pack.content.images[].image`), and those of the containers in its manifests. */
  readonly images: readonly string[]
  /** Guesses from the values of its charts and manifests, if it lists none, and from `image:` lines of manifests that are templates. */
  readonly guessed: readonly GuessedImage[]
}

/** Finds the images that the texts of a definition name, while the texts are checked. */
export interface ImageFinder {
  readonly onDocument: OnDocument
  /**
   * The images of a pack of a profile: from the values that apply to it, the manifests of its folder and the manifests in
   * the profile. Texts that are not valid YAML are skipped, and aliases are not followed.
   * @param index of the pack in its profile
   * @param folder of the pack, if it is in the archive
   */
  imagesOf(profile: Profile, index: number, folder: Pack | undefined): PackImages
}

interface Found {
  readonly images: Set<string>
  readonly guessed: GuessedImage[]
}

export function createImageFinder(): ImageFinder {
  const byPlace = new Map<string, Found>()
  const at = (place: string): Found => {
    const known = byPlace.get(place) ?? { images: new Set(), guessed: [] }
    byPlace.set(place, known)
    return known
  }
  const templates = new Map<string, GuessedImage[]>()
  /** Guesses from a manifest that is a template; empty for other manifests. */
  const inTemplate = (place: string, content: string): GuessedImage[] => {
    const known = templates.get(place)
    if (known) return known
    const isTemplate = content.includes('image:') && hasOtherBraces(content, findMacros(content))
    const guessed = isTemplate ? guessInLines(content) : []
    templates.set(place, guessed)
    return guessed
  }

  return {
    onDocument({ place, role, content, isTemplate }, document, unmask) {
      if (role === 'values') {
        if (content.includes('image')) findListed(document, at(place).images, unmask)
        if (/image|repository/i.test(content)) at(place).guessed.push(...guessInValues(document, unmask))
      } else if (!isTemplate && content.includes('ontainers'))
        findContainers(document, at(place).images, unmask)
    },
    imagesOf(profile, index, folder) {
      const { values, manifests } = textsOfPack(profile, index, folder)
      const ofValues = values && byPlace.get(values.place)
      const images = new Set(ofValues?.images)
      const guessed = images.size === 0 ? [...(ofValues?.guessed ?? [])] : []
      for (const { place, content } of manifests) {
        for (const image of byPlace.get(place)?.images ?? []) images.add(image)
        guessed.push(...inTemplate(place, content))
      }
      const unsure = new Map(guessed.map((each) => [each.image, each]))
      return {
        images: [...images].sort(),
        guessed: [...unsure.keys()]
          .filter((image) => !images.has(image))
          .sort()
          .flatMap((image) => unsure.get(image) ?? []),
      }
    },
  }
}

/** The images of a definition, without a check of its texts. */
export function findImages(definition: Definition): ImageFinder['imagesOf'] {
  const { onDocument, imagesOf } = createImageFinder()
  parseSourceTexts(definition, () => undefined, onDocument)
  return imagesOf
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
