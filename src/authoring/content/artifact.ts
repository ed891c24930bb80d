import { digestOf } from '../../content/format/descriptor.ts'
import { mediaTypes } from '../../content/format/media-types.ts'
import { canonicalJson } from './canonical-json.ts'
import type { EntryDescriptor, PlannedBlob } from './part.ts'

type Annotations = Readonly<Record<string, string>>

/** A blob of an artifact, and what its manifest says about it. */
export interface ArtifactBlob {
  readonly blob: PlannedBlob
  readonly mediaType: string
  readonly annotations?: Annotations
}

export interface ArtifactOptions {
  /** Without it the media type of the configuration says what it is, as for charts. */
  readonly artifactType?: string
  /** Without it the configuration that says nothing. */
  readonly config?: ArtifactBlob
  readonly layers: readonly ArtifactBlob[]
  /** Of the manifest. */
  readonly annotations?: Annotations
  /** Of its descriptor. */
  readonly entryAnnotations?: Annotations
  /** The option with its value, for messages. */
  readonly place: string
}

/** The manifest of an artifact, the descriptor that names it, and all its blobs. */
export interface Artifact {
  readonly entry: EntryDescriptor
  readonly blobs: readonly PlannedBlob[]
}

/**
 * Makes the manifest of an artifact.
 * Source: https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md#guidelines-for-artifact-usage
 */
export function makeArtifact(options: ArtifactOptions): Artifact {
  const { artifactType, layers, annotations = {}, entryAnnotations = {}, place } = options
  const config = options.config ?? emptyConfig(place)
  const manifest = makeDocument(place, {
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    ...(artifactType === undefined ? {} : { artifactType }),
    config: descriptorOf(config),
    layers: layers.map(descriptorOf),
    annotations,
  })
  const entry = descriptorOf({
    blob: manifest,
    mediaType: mediaTypes.manifest,
    annotations: entryAnnotations,
  })
  return {
    entry: artifactType === undefined ? entry : { ...entry, artifactType },
    blobs: [manifest, config.blob, ...layers.map(({ blob }) => blob)],
  }
}

/** An index or a manifest as a blob. */
export function makeDocument(place: string, document: object): PlannedBlob {
  return { ...makeBlob(place, Buffer.from(canonicalJson(document))), isDocument: true }
}

/** A blob of bytes. */
export const makeBlob = (place: string, bytes: Uint8Array): PlannedBlob => ({
  digest: digestOf(bytes),
  sizeBytes: bytes.length,
  isDocument: false,
  from: bytes,
  place,
})

const emptyConfig = (place: string): ArtifactBlob => ({
  blob: makeBlob(place, Buffer.from('{}')),
  mediaType: mediaTypes.emptyConfig,
})

export const descriptorOf = ({ blob, mediaType, annotations = {} }: ArtifactBlob): EntryDescriptor => ({
  mediaType,
  digest: blob.digest,
  size: blob.sizeBytes,
  ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
})
