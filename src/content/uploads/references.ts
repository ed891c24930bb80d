import type { Descriptor } from '../format/descriptor.ts'
import { documentTooLarge, openDocument, openIndexFile } from '../format/document.ts'
import { bundleLimits } from '../format/limits.ts'
import { documentKind } from '../format/media-types.ts'
import type { NamedBlob } from './wanted.ts'

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
