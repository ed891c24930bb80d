import type { Descriptor } from '../format/descriptor.ts'
import { documentTooLarge, parseDocument, parseIndexFile, type Document } from '../format/document.ts'
import { bundleLimits } from '../format/limits.ts'
import { documentKind } from '../format/media-types.ts'
import type { NamedBlob } from './wanted.ts'

/** The blobs that index.json names. @throws AppError where it breaks a rule of bundles */
export const namedByIndexFile = (bytes: Uint8Array): NamedBlob[] =>
  parseIndexFile(bytes, bundleLimits).children.map((child) => nameBlob(child, false))

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
  return namedBy(parseDocument(named, bytes, bundleLimits))
}

function namedBy(document: Document): NamedBlob[] {
  // An image for another platform may be left out, and a layer that may not be distributed.
  if (document.kind === 'index') return document.children.map((child) => nameBlob(child, true))
  return [document.config, ...document.layers].map((blob) => nameBlob(blob, blob.isForeign))
}

function nameBlob(descriptor: Descriptor, isOptional: boolean): NamedBlob {
  const { digest, sizeBytes, mediaType } = descriptor
  const isDocument = documentKind(mediaType) !== undefined
  // It is read as a whole.
  if (isDocument && sizeBytes > bundleLimits.documentBytes)
    throw documentTooLarge(descriptor, sizeBytes, bundleLimits)
  return { digest, sizeBytes, documentType: isDocument ? mediaType : undefined, isOptional }
}
