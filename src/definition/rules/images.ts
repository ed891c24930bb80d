import { isMap, isScalar, isSeq, parseDocument, type Document, type YAMLMap } from 'yaml'
import { withoutEndSlashes } from '../../base/end-slashes.ts'
import { textOf } from './pack-values.ts'
import type { Definition, Pack, Profile } from '../definition.ts'
import { findMacros, hasOtherBraces } from './macro.ts'
import { textsOfPack, parseSourceTexts, type OnDocument } from './sources.ts'

/** An image that a pack seems to use. */
export interface GuessedImage {
  /** As it would be pulled, macros in it unchanged. */
  readonly image: string
  /** Whether it has a tag or a digest. If values give none, a chart uses its `appVersion`, which is not known here. */
  readonly isTagKnown: boolean
}

type Unmask = (text: string) => string

/** `image`, `images`, `initImage`, `init_image`: a key whose value is an image. */
const imageKey = /^images?$|[a-z0-9]Image$|_image$/
// `host:port/path:tag@digest`. The OCI distribution specification is stricter, but charts write what a runtime accepts.
const reference =
  /^[A-Za-z0-9][\w.-]*(?::[0-9]+(?=\/))?(?:\/[\w.-]+)*(?::\w[\w.-]*)?(?:@sha256:[0-9a-f]{64})?$/
const lengthLimit = 512

/**
 * Guesses images from the values of charts and of manifests that are templates: `repository` with `tag`, `registry` or
 * `digest`, as most charts have them, and texts such as `image: name:tag`. Below a key such as `image`, `name` counts as
 * `repository`.
 */
function guessInValues({ contents }: Document, unmask: Unmask): GuessedImage[] {
  const guessed: GuessedImage[] = []
  const add = (parts: Parts) => {
    const found = compose(parts)
    if (found) guessed.push(found)
  }
  const tops = ['charts', 'manifests'].map((key) => (isMap(contents) ? contents.get(key, true) : undefined))
  const steps: { readonly node: unknown; readonly key: string }[] = tops.map((node) => ({ node, key: '' }))
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    const { node, key } = step
    if (isSeq(node)) steps.push(...node.items.map((item) => ({ node: item, key })))
    if (!isMap(node)) continue
    const texts = readTexts(node, unmask)
    const [tag, digest] = [texts.get('tag') ?? '', digestOf(texts)]
    const isImage = imageKey.test(key)
    const repository = texts.get('repository') ?? (isImage ? texts.get('name') : undefined)
    if (repository !== undefined && (isImage || texts.has('tag') || digest !== ''))
      add({ registry: texts.get('registry') ?? '', repository, tag, digest })
    for (const [name, image] of texts)
      if (imageKey.test(name))
        add({ registry: '', repository: image, tag: texts.get(`${name}Tag`) ?? tag, digest })
    for (const pair of node.items)
      steps.push({ node: pair.value, key: isScalar(pair.key) ? textOf(pair.key) : '' })
  }
  return guessed
}

/** Guesses images from the values of a pack in which all macros are resolved. @param values JSON or YAML */
export const guessFromValues = (values: string): GuessedImage[] =>
  guessInValues(parseDocument(values, { logLevel: 'silent' }), (text) => text)

/** Texts and numbers of a mapping; a tag may be `1.10`. A key without a value has an empty text. */
function readTexts(map: YAMLMap, unmask: Unmask): Map<string, string> {
  const texts = new Map<string, string>()
  for (const { key, value } of map.items) {
    if (!isScalar(key) || !isScalar(value) || typeof value.value === 'boolean') continue
    texts.set(textOf(key), value.value === null ? '' : unmask(textOf(value)))
  }
  return texts
}

function digestOf(texts: ReadonlyMap<string, string>): string {
  const digest = texts.get('digest') || texts.get('sha') || ''
  return digest === '' || digest.startsWith('sha256:') ? digest : `sha256:${digest}`
}

interface Parts {
  readonly registry: string
  readonly repository: string
  readonly tag: string
  readonly digest: string
}

function compose({ registry, repository, tag, digest }: Parts): GuessedImage | undefined {
  const length = registry.length + repository.length + tag.length + digest.length
  if (repository === '' || length > lengthLimit) return undefined
  const host = registry === '' ? '' : `${withoutEndSlashes(registry)}/`
  const isTagged = /[:@][^/]*$/.test(repository)
  const behind = isTagged ? '' : `${tag === '' ? '' : `:${tag}`}${digest === '' ? '' : `@${digest}`}`
  return toImage(`${host}${repository}${behind}`)
}

/** @returns undefined if the text cannot be an image */
function toImage(image: string): GuessedImage | undefined {
  if (image.length > lengthLimit) return undefined
  const plain = image.replaceAll(/\{\{-?\s*\.spectro\.[^{}]*\}\}/g, 'x')
  return reference.test(plain) ? { image, isTagKnown: /[:@][^/]*$/.test(plain) } : undefined
}

const imageLine =
  /^[ \t]*(?:-[ \t]+)?["']?image["']?:[ \t]*(["']?)((?:\{\{[^{}\n]*\}\}|[^\s'"#{}])+)\1[ \t]*(?:#.*)?$/gm

/** Images of the lines `image: name:tag` in a text that is YAML only after rendering. */
export function guessInTemplate(text: string): GuessedImage[] {
  return Array.from(text.matchAll(imageLine), ([, , image = '']) => toImage(image)).filter(
    (each) => each !== undefined,
  )
}

const containerLists = new Set(['containers', 'initContainers', 'ephemeralContainers'])

/** The images of a pack as they are written, with macros; sorted by code unit, each once. */
interface PackImages {
  /** Images that it lists (`pack.content.images[].image`), and images of the containers in its manifests. */
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
    const guessed = isTemplate ? guessInTemplate(content) : []
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
