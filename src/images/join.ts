import { createSlices } from '../base/slices.ts'
import type { Platform } from '../content/format/descriptor.ts'
import { formatImageName, parseImageName } from '../content/format/image-name.ts'
import type { StoredImage } from '../content/reads/stored-images.ts'
import { platformKey, type SeenImage } from './runtimes/describe.ts'

/** The images of one runtime. */
export interface SeenImages<Source> {
  readonly source: Source
  readonly images: readonly SeenImage[]
}

export interface ImageRow<Source> {
  /** The digest, or the image id where there is none. */
  readonly id: string
  /** Digest of its index or manifest; empty without one. */
  readonly digest: string
  readonly imageId: string
  /** The first of its names, else the digest. */
  readonly title: string
  readonly names: readonly { readonly name: string; readonly tag: string; readonly hasTag: boolean }[]
  readonly sizeBytes: number
  readonly platforms: readonly Platform[]
  /** Its places, without the store. */
  readonly locations: readonly { readonly source: Source; readonly namespace: string }[]
  readonly isStored: boolean
  readonly isPullable: boolean
}

/** A row while it is joined. */
interface Draft<Source> {
  digest: string
  imageId: string
  names: Map<string, { name: string; tag: string }>
  sizeBytes: number
  platforms: Map<string, Platform>
  locations: Map<string, { source: Source; namespace: string }>
  isStored: boolean
  isPullable: boolean
}

// Longer than any name that registries accept.
const longestTitle = 512

/**
 * Joins the images of the store and of the runtimes by digest. A runtime may know several digests of one image, of its index and of its
 * manifest: it is joined with the one that the store or another runtime has. An image without a digest is joined by its image id.
 * Yields to other work of the event loop.
 * @param stored by pages
 * @returns the rows by title
 */
export async function joinImages<Source>(
  stored: AsyncIterable<readonly StoredImage[]> | Iterable<readonly StoredImage[]>,
  seen: readonly SeenImages<Source>[],
): Promise<ImageRow<Source>[]> {
  const rest = createSlices()
  const drafts = new Map<string, Draft<Source>>()
  /** Digest that the registry of this host gives for a name and tag. */
  const tags = new Map<string, string>()
  const draftOf = (id: string): Draft<Source> => {
    const known = drafts.get(id)
    if (known) return known
    const draft = emptyDraft<Source>()
    drafts.set(id, draft)
    return draft
  }

  for await (const page of stored) {
    for (const image of page) {
      const draft = draftOf(image.digest)
      draft.digest = image.digest
      draft.isStored = true
      draft.isPullable ||= image.isPullable
      draft.sizeBytes ||= image.sizeBytes
      addPlatforms(draft, image.platforms)
      if (image.name === '') continue
      addName(draft, image.name, image.tag)
      if (image.hasTag) tags.set(`${image.name}:${image.tag}`, image.digest)
    }
    await rest()
  }

  // An image that is known by one digest only decides which of several digests the row has.
  const known = new Set(drafts.keys())
  for (const { images } of seen)
    for (const {
      digests: [first, second],
    } of images)
      if (first && !second) known.add(first)
  const idsByImage = new Map<string, string>()
  const withoutDigest: [Source, SeenImage][] = []
  const add = (source: Source, image: SeenImage, id: string, digest: string) => {
    const draft = draftOf(id)
    draft.digest = digest
    addSeen(draft, source, image)
    if (digest !== '' && draft.imageId !== '' && !idsByImage.has(draft.imageId))
      idsByImage.set(draft.imageId, id)
  }
  for (const { source, images } of seen)
    for (const image of images) {
      await rest()
      const { digests } = image
      const digest =
        digests.find((each) => drafts.get(each)?.isStored) ??
        digests.find((each) => known.has(each)) ??
        digests[0]
      if (digest === undefined) withoutDigest.push([source, image])
      else add(source, image, digest, digest)
    }
  for (const [source, image] of withoutDigest) {
    await rest()
    const { imageId = '' } = image.description
    const id = idsByImage.get(imageId) ?? imageId
    if (id !== '') add(source, image, id, id === imageId ? '' : id)
  }

  const rows: ImageRow<Source>[] = []
  for (const [id, draft] of drafts) {
    await rest()
    rows.push(finish(id, draft, tags))
  }
  return rows.sort((one, two) => (one.title < two.title ? -1 : one.title > two.title ? 1 : 0))
}

const emptyDraft = <Source>(): Draft<Source> => ({
  digest: '',
  imageId: '',
  names: new Map(),
  sizeBytes: 0,
  platforms: new Map(),
  locations: new Map(),
  isStored: false,
  isPullable: false,
})

function addSeen<Source>(
  draft: Draft<Source>,
  source: Source,
  { namespace = '', names, description }: SeenImage,
): void {
  draft.imageId ||= description.imageId ?? ''
  draft.sizeBytes ||= description.sizeBytes ?? 0
  addPlatforms(draft, description.platforms ?? [])
  for (const each of names) {
    const parsed = parseImageName(each)
    if (!('problem' in parsed)) addName(draft, parsed.name, parsed.tag ?? '')
    // The kubelet's runtime also names an image by its id: that is no name.
    else if (!each.startsWith('sha256:')) addName(draft, each.slice(0, longestTitle), '')
  }
  const endpoint = (source as { readonly endpoint?: string }).endpoint ?? ''
  draft.locations.set(`${endpoint} ${namespace}`, { source, namespace })
}

const addName = <Source>({ names }: Draft<Source>, name: string, tag: string) =>
  void names.set(`${name}:${tag}`, { name, tag })

function addPlatforms<Source>(draft: Draft<Source>, platforms: readonly Platform[]): void {
  for (const platform of platforms) {
    const { os, architecture, variant } = platform
    draft.platforms.set(platformKey(platform), {
      os,
      architecture,
      ...(variant === undefined ? {} : { variant }),
    })
  }
}

function finish<Source>(
  id: string,
  draft: Draft<Source>,
  tags: ReadonlyMap<string, string>,
): ImageRow<Source> {
  const { digest, imageId, sizeBytes, isStored, isPullable } = draft
  const tagged = new Set([...draft.names.values()].flatMap(({ name, tag }) => (tag === '' ? [] : [name])))
  const names = [...draft.names.values()]
    // A name with only a digest says nothing where the same name has a tag.
    .filter(({ name, tag }) => tag !== '' || !tagged.has(name))
    .map(({ name, tag }) => ({ name, tag, hasTag: tag !== '' && tags.get(`${name}:${tag}`) === digest }))
    // First those by which the host has it: docker also knows it by the address of the registry of the host.
    .sort(
      (one, two) =>
        Number(two.hasTag) - Number(one.hasTag) ||
        (`${one.name}:${one.tag}` < `${two.name}:${two.tag}` ? -1 : 1),
    )
  const [first] = names
  const title = first
    ? formatImageName({ name: first.name, ...(first.tag === '' ? {} : { tag: first.tag }) })
    : id
  return {
    id,
    digest,
    imageId,
    title,
    names,
    sizeBytes,
    isStored,
    isPullable,
    platforms: [...draft.platforms.values()],
    locations: [...draft.locations.values()],
  }
}
