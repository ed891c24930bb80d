import type { Descriptor } from '../format/descriptor.ts'
import { documentTooLarge, openDocument, openIndexFile } from '../format/document.ts'
import { bundleLimits } from '../format/refusal.ts'
import { documentKind } from '../format/media-types.ts'

/** The blobs that index.json names. @throws AppError where it breaks a rule of bundles */
export const namedByIndexFile = (bytes: Uint8Array): NamedBlob[] =>
  nameAll(openIndexFile(bytes, bundleLimits).children, () => false)

/**
 * The blobs that an index or a manifest names.
 * @param document whose bytes have its digest
 * @throws AppError where it breaks a rule of bundles
 */
export function namedByDocument(
  { digest, sizeBytes, documentType = '' }: NamedBlob,
  bytes: Uint8Array,
): NamedBlob[] {
  const named = { digest, sizeBytes, mediaType: documentType, place: digest }
  const document = openDocument(named, bytes, bundleLimits)
  // An image for another platform may be left out, and a layer that may not be distributed.
  if (document.kind === 'index') return nameAll(document.children, () => true)
  const { config, layers } = document
  return [nameBlob(config, config.isForeign), ...nameAll(layers, ({ isForeign }) => isForeign)]
}

const nameAll = (descriptors: Iterable<Descriptor>, isOptional: (each: Descriptor) => boolean): NamedBlob[] =>
  Array.from(descriptors, (each) => nameBlob(each, isOptional(each)))

function nameBlob(descriptor: Descriptor, isOptional: boolean): NamedBlob {
  const { digest, sizeBytes, mediaType } = descriptor
  const isDocument = documentKind(mediaType) !== undefined
  // It is read as a whole.
  if (isDocument && sizeBytes > bundleLimits.documentBytes)
    throw documentTooLarge(descriptor, sizeBytes, bundleLimits)
  return { digest, sizeBytes, documentType: isDocument ? mediaType : undefined, isOptional }
}

/** A blob that a document names. */
export interface NamedBlob {
  /** `sha256:` and hex. */
  readonly digest: string
  readonly sizeBytes: number
  /** Media type of an index or a manifest, which says how it is read; undefined for all other blobs. */
  readonly documentType: string | undefined
  /** Whether the bundle may leave it out, as an index may leave out the image of another platform. */
  readonly isOptional: boolean
}

/** A blob of an upload. */
export interface WantedBlob {
  readonly digest: string
  readonly sizeBytes: number
  documentType: string | undefined
  isOptional: boolean
  /** Bytes on the disk; they are only all bytes of the blob when it is whole. */
  heldBytes: number
  /** Whole and verified. */
  isWhole: boolean
}

/** Blobs that an upload needs, as far as the documents that have arrived name them, and their held bytes. */
export interface Wanted {
  find(digest: string): WantedBlob | undefined
  /** @returns the blob, if it was not known before, or not as a document */
  add(named: NamedBlob): WantedBlob | undefined
  /** Sets the held bytes of a blob, and keeps the sums. */
  hold(blob: WantedBlob, heldBytes: number, isWhole: boolean): void
  /** Blobs that are not whole: documents first. Optional ones too. */
  missing(): Generator<WantedBlob, void, undefined>
  readonly count: number
  /** Bytes of needed or held blobs. */
  readonly totalBytes: number
  readonly heldBytes: number
  /** Needed blobs that are not whole. */
  readonly missingCount: number
  /** Their bytes that are not held yet. */
  readonly missingBytes: number
  /** Bytes of documents among them. */
  readonly missingDocumentBytes: number
}

export function createWanted(): Wanted {
  const documents = new Map<string, WantedBlob>()
  const others = new Map<string, WantedBlob>()
  const sums = { totalBytes: 0, heldBytes: 0, missingCount: 0, missingBytes: 0, missingDocumentBytes: 0 }

  /** Adds the share of a blob to the sums, or takes it away. */
  function count(blob: WantedBlob, sign: 1 | -1): void {
    const { sizeBytes, heldBytes, isWhole, isOptional, documentType } = blob
    const missingBytes = sizeBytes - heldBytes
    sums.heldBytes += sign * heldBytes
    sums.totalBytes += sign * (isOptional ? heldBytes : sizeBytes)
    if (isWhole || isOptional) return
    sums.missingCount += sign
    sums.missingBytes += sign * missingBytes
    if (documentType !== undefined) sums.missingDocumentBytes += sign * missingBytes
  }

  const change = (blob: WantedBlob, fields: Partial<WantedBlob>) => {
    count(blob, -1)
    Object.assign(blob, fields)
    count(blob, 1)
  }

  return {
    find: (digest) => documents.get(digest) ?? others.get(digest),
    add({ digest, sizeBytes, documentType, isOptional }) {
      const known = documents.get(digest) ?? others.get(digest)
      if (known) {
        if (known.isOptional && !isOptional) change(known, { isOptional })
        if (documentType === undefined || known.documentType !== undefined) return undefined
        others.delete(digest)
        documents.set(digest, known)
        change(known, { documentType })
        return known
      }
      const blob = { digest, sizeBytes, documentType, isOptional, heldBytes: 0, isWhole: false }
      ;(documentType === undefined ? others : documents).set(digest, blob)
      count(blob, 1)
      return blob
    },
    hold: (blob, heldBytes, isWhole) => change(blob, { heldBytes, isWhole }),
    *missing() {
      for (const blobs of [documents, others])
        for (const blob of blobs.values()) if (!blob.isWhole) yield blob
    },
    get count() {
      return documents.size + others.size
    },
    get totalBytes() {
      return sums.totalBytes
    },
    get heldBytes() {
      return sums.heldBytes
    },
    get missingCount() {
      return sums.missingCount
    },
    get missingBytes() {
      return sums.missingBytes
    },
    get missingDocumentBytes() {
      return sums.missingDocumentBytes
    },
  }
}
