import { parseDescriptor, type Descriptor } from './descriptor.ts'
import { parseFields, type Fields } from './json-fields.ts'
import { type BundleLimits, refuseBundle, showText } from './refusal.ts'
import { documentKind, mediaTypes, outdatedManifests } from './media-types.ts'

/** An index of images, also index.json itself. */
export interface Index {
  readonly kind: 'index'
  readonly artifactType: string | undefined
  /** Digest of the document that it belongs to, as a signature to an image; it need not be here. */
  readonly subject: string | undefined
  readonly annotations: ReadonlyMap<string, string>
  readonly children: readonly Descriptor[]
}

/** The manifest of an image or artifact, of OCI or of Docker. */
export interface Manifest {
  readonly kind: 'manifest'
  readonly artifactType: string | undefined
  /** As of an index. */
  readonly subject: string | undefined
  readonly annotations: ReadonlyMap<string, string>
  readonly config: Descriptor
  readonly layers: readonly Descriptor[]
}

export type Document = Index | Manifest

/** An index whose descriptors are checked one by one as they are read, since a long list may take long. */
export interface OpenedIndex extends Omit<Index, 'children'> {
  readonly children: Iterable<Descriptor>
}

/** A manifest whose layers are checked one by one as they are read. */
export interface OpenedManifest extends Omit<Manifest, 'layers'> {
  readonly layers: Iterable<Descriptor>
}

/** The expected document, by the descriptor that names it. */
export type NamedDocument = Pick<Descriptor, 'digest' | 'mediaType' | 'place'>

/** Parses index.json. @throws AppError with the field */
export function parseIndexFile(bytes: Uint8Array, limits: BundleLimits): Index {
  const opened = openIndexFile(bytes, limits)
  return { ...opened, children: [...opened.children] }
}

/**
 * Opens index.json.
 * Source: https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md
 * @throws AppError with the field; for a descriptor when that is read
 */
export function openIndexFile(bytes: Uint8Array, limits: BundleLimits): OpenedIndex {
  const place = 'index.json'
  if (bytes.length > limits.indexFileBytes)
    throw refuseBundle(
      'IndexTooLarge',
      place,
      `has ${bytes.length} bytes; ${limits.indexFileBytes} are allowed; split the bundle`,
    )
  const fields = parseFields(place, bytes)
  checkVersion(fields)
  if (fields.has('layers') || fields.has('config'))
    throw refuseBundle('FieldInvalid', place, 'is a manifest; the index.json of a layout has only manifests')
  const mediaType = fields.optionalText('mediaType') || mediaTypes.index
  if (documentKind(mediaType) !== 'index')
    throw refuseBundle('MediaTypeDiffers', `${place}#mediaType`, `is ${showText(mediaType)}, not an index`)
  if (fields.items('manifests').length === 0)
    throw refuseBundle(
      'BundleEmpty',
      `${place}#manifests`,
      'is empty; early versions 25.0 of docker save write it so for an image that is given by digest: save it by a tag',
    )
  return openIndex(fields, limits)
}

/** Parses an index or a manifest. @throws AppError with the field */
export function parseDocument(named: NamedDocument, bytes: Uint8Array, limits: BundleLimits): Document {
  const opened = openDocument(named, bytes, limits)
  return opened.kind === 'index'
    ? { ...opened, children: [...opened.children] }
    : { ...opened, layers: [...opened.layers] }
}

/**
 * Opens an index or a manifest.
 * @param named by its descriptor; the bytes have its digest
 * @throws AppError with the field; for a descriptor of a list when that is read
 */
export function openDocument(
  named: NamedDocument,
  bytes: Uint8Array,
  limits: BundleLimits,
): OpenedIndex | OpenedManifest {
  const { digest, mediaType } = named
  if (bytes.length > limits.documentBytes) throw documentTooLarge(named, bytes.length, limits)
  const fields = parseFields(digest, bytes)
  checkVersion(fields)
  const own = fields.optionalText('mediaType') || mediaType
  if (own !== mediaType)
    throw refuseBundle(
      'MediaTypeDiffers',
      `${digest}#mediaType`,
      `is ${showText(own)}; ${named.place} calls it ${showText(mediaType)}`,
    )
  const kind = documentKind(mediaType)
  // A reader that looks only at the content must not see another kind of document: CVE-2021-41190.
  const foreign = kind === 'index' ? ['layers', 'config', 'fsLayers'] : ['manifests', 'fsLayers']
  for (const name of foreign)
    if (fields.has(name))
      throw refuseBundle(
        'FieldInvalid',
        `${digest}#${name}`,
        `must not be in a document of type ${mediaType}`,
      )
  return kind === 'index' ? openIndex(fields, limits) : openManifest(fields, limits)
}

/** The refusal of a document that is too large to be parsed. */
export const documentTooLarge = (
  { digest }: Pick<Descriptor, 'digest'>,
  sizeBytes: number,
  { documentBytes }: BundleLimits,
) =>
  refuseBundle(
    'ManifestTooLarge',
    digest,
    `is an index or manifest of ${sizeBytes} bytes; ${documentBytes} are allowed`,
  )

function checkVersion(fields: Fields): void {
  if (fields.count('schemaVersion') !== 2)
    throw refuseBundle(
      'FieldInvalid',
      `${fields.place}#schemaVersion`,
      'is not 2; push or save the image again with a current tool',
    )
}

const openIndex = (fields: Fields, limits: BundleLimits): OpenedIndex => ({
  kind: 'index',
  ...commonFields(fields),
  children: readAll(fields.objects('manifests', limits.descriptors), parseChild),
})

const openManifest = (fields: Fields, limits: BundleLimits): OpenedManifest => ({
  kind: 'manifest',
  ...commonFields(fields),
  config: parseDescriptor(fields.object('config')),
  layers: readAll(fields.objects('layers', limits.descriptors), parseDescriptor),
})

function* readAll(items: Iterable<Fields>, parse: (item: Fields) => Descriptor): Generator<Descriptor> {
  for (const item of items) yield parse(item)
}

function parseChild(fields: Fields): Descriptor {
  const child = parseDescriptor(fields)
  if (outdatedManifests.has(child.mediaType))
    throw refuseBundle(
      'ManifestOutdated',
      `${fields.place}.mediaType`,
      `is ${child.mediaType}, a format that was given up; push or save the image again with a current tool`,
    )
  return child
}

const commonFields = (fields: Fields) => ({
  artifactType: fields.optionalText('artifactType') || undefined,
  subject: fields.optionalObject('subject')?.optionalText('digest') || undefined,
  annotations: fields.texts('annotations'),
})
