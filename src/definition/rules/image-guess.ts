import { isMap, isScalar, isSeq } from 'yaml'
import type { Document, YAMLMap } from 'yaml'
import { withoutEndSlashes } from '../../base/end-slashes.ts'
import { textOf } from './pack-values.ts'

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
export function guessInValues({ contents }: Document, unmask: Unmask): GuessedImage[] {
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
export function guessInLines(text: string): GuessedImage[] {
  return Array.from(text.matchAll(imageLine), ([, , image = '']) => toImage(image)).filter(
    (each) => each !== undefined,
  )
}
