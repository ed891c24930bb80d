import type { Descriptor } from '../format/descriptor.ts'
import { documentTooLarge, openDocument, openIndexFile } from '../format/document.ts'
import { bundleLimits } from '../format/limits.ts'
import { documentKind } from '../format/media-types.ts'
import { createSlices } from '../../base/slices.ts'
import type { NamedBlob } from './wanted.ts'

// Less than a millisecond.
const descriptorsAtOnce = 100

/** The blobs that index.json names. It lets other work run meanwhile. @throws AppError where it breaks a rule of bundles */
export const namedByIndexFile = async (bytes: Uint8Array): Promise<NamedBlob[]> =>
  nameAll(openIndexFile(bytes, bundleLimits).children, () => false)

/**
 * The blobs that an index or a manifest names. It lets other work run meanwhile: a document of 5 MB has some 30,000 descriptors, whose
 * check takes ten times as long as `JSON.parse`.
 * @param document whose bytes have its digest
 * @throws AppError where it breaks a rule of bundles
 */
export async function namedByDocument(
  { digest, sizeBytes, documentType = '' }: NamedBlob,
  bytes: Uint8Array,
): Promise<NamedBlob[]> {
  const named = { digest, sizeBytes, mediaType: documentType, place: digest }
  const document = openDocument(named, bytes, bundleLimits)
  // An image for another platform may be left out, and a layer that may not be distributed.
  if (document.kind === 'index') return nameAll(document.children, () => true)
  const { config, layers } = document
  return [nameBlob(config, config.isForeign), ...(await nameAll(layers, ({ isForeign }) => isForeign))]
}

async function nameAll(
  descriptors: Iterable<Descriptor>,
  isOptional: (each: Descriptor) => boolean,
): Promise<NamedBlob[]> {
  const slice = createSlices()
  const named: NamedBlob[] = []
  for (const each of descriptors) {
    named.push(nameBlob(each, isOptional(each)))
    if (named.length % descriptorsAtOnce === 0) await slice()
  }
  return named
}

function nameBlob(descriptor: Descriptor, isOptional: boolean): NamedBlob {
  const { digest, sizeBytes, mediaType } = descriptor
  const isDocument = documentKind(mediaType) !== undefined
  // It is read as a whole.
  if (isDocument && sizeBytes > bundleLimits.documentBytes)
    throw documentTooLarge(descriptor, sizeBytes, bundleLimits)
  return { digest, sizeBytes, documentType: isDocument ? mediaType : undefined, isOptional }
}
