import type { Descriptor } from './descriptor.ts'
import { parseDocument, parseIndexFile, type Document, type Index } from './document.ts'
import { bundleLimits, type BundleLimits, refuseBundle } from './refusal.ts'
import { documentKind } from './media-types.ts'

/** A blob that a bundle names. */
export interface Need {
  readonly digest: string
  readonly sizeBytes: number
  /** `document`: an index or manifest, whose bytes `addDocument` takes, since they name more. */
  readonly kind: 'document' | 'blob'
  /** False for children of an index and for layers that may not be distributed: a bundle is whole without them. */
  readonly isRequired: boolean
  /** The descriptor that names it; the first one that made it what it is. */
  readonly descriptor: Descriptor
}

/**
 * The blobs that a bundle names, found document by document, in any order that begins with index.json. The same rules serve a
 * whole folder and an upload whose blobs arrive one by one.
 */
export interface Walk {
  /**
   * @returns the named blobs
   * @throws AppError BundleInvalid or BundleTooLarge, as the next one
   */
  addIndexFile(bytes: Uint8Array): readonly Need[]
  /**
   * Adds the bytes of a document that is needed; the caller has compared them with the digest. Adding one again changes
   * nothing.
   * @returns the named blobs that were not named before, or not as a document, or not as required
   */
  addDocument(digest: string, bytes: Uint8Array): readonly Need[]
  /** All needs by digest, in the order in which they were named. */
  readonly needs: ReadonlyMap<string, Need>
  /** index.json, when it was added. */
  index(): Index | undefined
  /** The documents that were added. */
  readonly documents: ReadonlyMap<string, Document>
}

export function createWalk(limits: BundleLimits = bundleLimits): Walk {
  const needs = new Map<string, Need>()
  const documents = new Map<string, Document>()
  const depths = new Map<string, number>()
  let index: Index | undefined
  let documentCount = 0

  function countDocument({ digest, place }: Descriptor, depth: number): void {
    documentCount += 1
    if (documentCount > limits.documents)
      throw refuseBundle(
        'TooManyBlobs',
        place,
        `exceeds the ${limits.documents} indexes and manifests a bundle may name`,
      )
    if (depth > limits.depth)
      throw refuseBundle(
        'TooDeep',
        place,
        `is an index or manifest ${depth} levels below index.json; ${limits.depth} are allowed`,
      )
    depths.set(digest, depth)
  }

  /** @returns the need if it is new or says more than before */
  function name(descriptor: Descriptor, isRequired: boolean, depth: number): Need | undefined {
    const { digest, sizeBytes, mediaType, place } = descriptor
    const known = needs.get(digest)
    if (known) requireSame(known, descriptor)
    else if (needs.size >= limits.blobs)
      throw refuseBundle('TooManyBlobs', place, `exceeds the ${limits.blobs} blobs a bundle may name`)
    const isNewDocument = documentKind(mediaType) !== undefined && known?.kind !== 'document'
    if (isNewDocument) countDocument(descriptor, depth)
    const isNewlyRequired = isRequired && known?.isRequired === false
    if (known !== undefined && !isNewDocument && !isNewlyRequired) return undefined
    const need: Need = {
      digest,
      sizeBytes,
      kind: isNewDocument ? 'document' : (known?.kind ?? 'blob'),
      isRequired: isRequired || known?.isRequired === true,
      descriptor: known === undefined || isNewDocument ? descriptor : known.descriptor,
    }
    needs.set(digest, need)
    return need
  }

  const nameAll = (
    descriptors: readonly Descriptor[],
    isRequired: (one: Descriptor) => boolean,
    depth: number,
  ) => descriptors.flatMap((descriptor) => name(descriptor, isRequired(descriptor), depth) ?? [])

  return {
    needs,
    documents,
    index: () => index,
    addIndexFile(bytes) {
      index = parseIndexFile(bytes, limits)
      return nameAll(index.children, () => true, 1)
    },
    addDocument(digest, bytes) {
      const need = needs.get(digest)
      if (need?.kind !== 'document') throw new Error(`${digest} is not a document of this bundle`)
      if (documents.has(digest)) return []
      if (bytes.length !== need.sizeBytes) throw sizeDiffers(need, bytes.length)
      const document = parseDocument(need.descriptor, bytes, limits)
      documents.set(digest, document)
      const depth = (depths.get(digest) ?? 0) + 1
      if (document.kind === 'index') return nameAll(document.children, () => false, depth)
      return nameAll([document.config, ...document.layers], ({ isForeign }) => !isForeign, depth)
    },
  }
}

/** Descriptors of one blob must agree. @throws AppError SizeDiffers or MediaTypeDiffers */
function requireSame(known: Need, { place, sizeBytes, mediaType }: Descriptor): void {
  if (known.sizeBytes !== sizeBytes)
    throw refuseBundle(
      'SizeDiffers',
      `${place}.size`,
      `is ${sizeBytes}; ${known.descriptor.place}.size says ${known.sizeBytes} of the same blob`,
    )
  // A layer may have any type; a document is read by its own.
  const isOtherDocument = documentKind(mediaType) !== undefined && known.kind === 'document'
  if (isOtherDocument && known.descriptor.mediaType !== mediaType)
    throw refuseBundle(
      'MediaTypeDiffers',
      `${place}.mediaType`,
      `differs from ${known.descriptor.place}.mediaType, which names the same blob`,
    )
}

/** The refusal of a blob whose size is not the one that its descriptor gives. */
export const sizeDiffers = ({ digest, sizeBytes, descriptor }: Need, found: number) =>
  refuseBundle(
    'SizeDiffers',
    `${descriptor.place}.size`,
    `is ${sizeBytes}, but the blob has ${found} bytes; save or push the image again with a current tool`,
    { digest },
  )

const shownMissing = 20

/**
 * Checks that a bundle is whole, when every document that is held was added.
 * @param isHeld whether a blob is there
 * @throws AppError BundleIncomplete
 */
export function requireWhole(walk: Walk, isHeld: (digest: string) => boolean): void {
  const missing = [...walk.needs.values()].filter(({ digest, isRequired }) => isRequired && !isHeld(digest))
  const [first] = missing
  if (first !== undefined) {
    const others = missing.length === 1 ? '' : ` and ${missing.length - 1} more`
    throw refuseBundle(
      'BlobMissing',
      first.descriptor.place,
      `names ${first.digest}, which is not in the bundle${others}; pull the images again with all their layers and build the bundle again`,
      {
        missingCount: missing.length,
        missing: missing
          .slice(0, shownMissing)
          .map(({ digest, sizeBytes, descriptor: { place } }) => ({ digest, sizeBytes, namedBy: place })),
      },
    )
  }
  for (const [digest, document] of walk.documents) {
    if (document.kind !== 'index' || document.children.length === 0) continue
    if (!wantedChildren(document).some((child) => isHeld(child.digest)))
      throw refuseBundle(
        'NothingCarried',
        digest,
        `is an index of ${document.children.length} images, and the bundle has none of them; pull the image for the platform of the host and build the bundle again`,
        { missingCount: document.children.length },
      )
  }
}

/** The children of an index without BuildKit's statements about them, unless there is nothing else. */
function wantedChildren({ children }: Index): readonly Descriptor[] {
  const wanted = children.filter(({ isAttestation }) => !isAttestation)
  return wanted.length > 0 ? wanted : children
}
