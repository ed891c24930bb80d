/** Media types and annotations of bundles, from the OCI image specification, Docker, Helm and this project. */
export const mediaTypes = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  /** A configuration that says nothing; its content is `{}`. */
  emptyConfig: 'application/vnd.oci.empty.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar',
  layerGzip: 'application/vnd.oci.image.layer.v1.tar+gzip',
  dockerIndex: 'application/vnd.docker.distribution.manifest.list.v2+json',
  dockerManifest: 'application/vnd.docker.distribution.manifest.v2+json',
  dockerConfig: 'application/vnd.docker.container.image.v1+json',
  chartConfig: 'application/vnd.cncf.helm.config.v1+json',
  chartContent: 'application/vnd.cncf.helm.chart.content.v1.tar+gzip',
  /** A file of a program, and a file of `content build --file`. */
  fileContent: 'application/octet-stream',
  /** The archive of a definition, whatever its compression. */
  definitionContent: 'application/vnd.edgehostd.definition.content.v1',
} as const

/** `artifactType` of artifacts of `edgehostctl content build`. A chart has Helm's: the media type of its configuration. */
export const artifactTypes = {
  /** A program of one name, version and architecture: a layer for each file. */
  program: 'application/vnd.edgehostd.program.v1',
  /** One file: its only layer. */
  file: 'application/vnd.edgehostd.file.v1',
  /** A cluster definition: its first layer is the archive. */
  definition: 'application/vnd.edgehostd.definition.v1',
} as const

export const annotations = {
  /** Whole name of an image; written by ctr, Docker and BuildKit. */
  imageName: 'io.containerd.image.name',
  /** A tag or a whole name, depending on the tool. */
  refName: 'org.opencontainers.image.ref.name',
  /** Whole name of an image in layouts of some packaging tools. */
  baseName: 'org.opencontainers.image.base.name',
  /** Name of a chart or program; of a layer: the name of its file. */
  title: 'org.opencontainers.image.title',
  version: 'org.opencontainers.image.version',
  created: 'org.opencontainers.image.created',
  /** Mode of a layer that is a file of a program: `0755` or `0644`. */
  fileMode: 'io.edgehostd.file.mode',
  /** On a descriptor of index.json; the value `spc` marks a cluster definition. */
  contentType: 'io.image.ref.spectrocloud.type',
  /** On a descriptor of an index; the value `attestation-manifest` marks BuildKit's statement about an image. */
  referenceType: 'vnd.docker.reference.type',
} as const

/** Value of `annotations.contentType` for a cluster definition. */
export const definitionMark = 'spc'

const indexes: ReadonlySet<string> = new Set([mediaTypes.index, mediaTypes.dockerIndex])
const manifests: ReadonlySet<string> = new Set([mediaTypes.manifest, mediaTypes.dockerManifest])

/** Content behind a media type of a descriptor: an index, a manifest, or bytes without further references. */
export function documentKind(mediaType: string): 'index' | 'manifest' | undefined {
  if (indexes.has(mediaType)) return 'index'
  return manifests.has(mediaType) ? 'manifest' : undefined
}

/** Manifests of older formats: they name blobs in ways that this host does not follow, so their images would be incomplete. */
export const outdatedManifests: ReadonlySet<string> = new Set([
  'application/vnd.docker.distribution.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v1+prettyjws',
  'application/vnd.oci.artifact.manifest.v1+json',
])

const imageConfigs: ReadonlySet<string> = new Set([mediaTypes.config, mediaTypes.dockerConfig])
export const isImageConfig = (mediaType: string): boolean => imageConfigs.has(mediaType)

const imageLayer =
  /^application\/vnd\.(?:oci\.image\.layer\.(?:nondistributable\.)?v1\.tar|docker\.image\.rootfs\.(?:foreign\.)?diff\.tar)(?:[.+]\w+)*$/
/** Whether a layer is a part of a file system, not of an artifact such as a signature. */
export const isImageLayer = (mediaType: string): boolean => imageLayer.test(mediaType)

const plainLayers: ReadonlySet<string> = new Set([
  mediaTypes.layer,
  'application/vnd.docker.image.rootfs.diff.tar',
])
/** Whether a layer is not compressed. */
export const isPlainLayer = (mediaType: string): boolean => plainLayers.has(mediaType)

const foreignLayer =
  /^application\/vnd\.(?:oci\.image\.layer\.nondistributable|docker\.image\.rootfs\.foreign)\./
/** Whether a layer may not be distributed; tools leave its blob out and name its origin in `urls`. */
export const isForeignLayer = (mediaType: string): boolean => foreignLayer.test(mediaType)
