import { type Descriptor, type Platform, parsePlatform } from './descriptor.ts'
import type { Manifest } from './document.ts'
import { nameEntry, type EntryName } from './image-name.ts'
import { parseFields, type Fields } from './json-fields.ts'
import { bundleLimits, type BundleLimits, refuseBundle, showText } from './refusal.ts'
import {
  annotations as keys,
  artifactTypes,
  definitionMark,
  isImageConfig,
  isImageLayer,
  isPlainLayer,
  mediaTypes,
} from './media-types.ts'
import type { Walk } from './walk.ts'

export type EntryKind = 'image' | 'chart' | 'program' | 'file' | 'definition' | 'artifact'

/** An entry of index.json: an image, chart, program, file, definition, or another artifact. */
export interface Entry extends EntryName {
  readonly digest: string
  readonly mediaType: string
  readonly kind: EntryKind
  /** Name by which a chart, program or file is asked for. */
  readonly title?: string
  /** Version of a chart or program. */
  readonly version?: string
  /** All its blobs that are here, each counted once. */
  readonly sizeBytes: number
  /** Its platforms, also those that are not carried; empty if nothing names them. */
  readonly platforms: readonly EntryPlatform[]
  /** Milliseconds since 1970, UTC. */
  readonly createdAt?: number
  /** Files of an artifact: its layers with a name. */
  readonly files?: readonly EntryFile[]
}

export interface EntryPlatform extends Platform {
  /** Digest of the manifest. */
  readonly digest: string
  /** Whether the manifest and all its layers are here, also those that may not be distributed: without them no runtime can pull it. */
  readonly isCarried: boolean
}

export interface EntryFile {
  /** Path of the file: relative, without `..`. */
  readonly title: string
  /** Digest of the manifest that has it: of a program there is one for each platform. */
  readonly manifest: string
  readonly digest: string
  readonly sizeBytes: number
  /** Whether its mode is 0755; absent for 0644. */
  readonly isExecutable?: true
}

/** Content of a bundle. */
export interface Described {
  readonly entries: readonly Entry[]
  /** Architectures of the images and programs that are here, sorted. */
  readonly architectures: readonly string[]
  /** The archive of the definition inside. */
  readonly definition?: { readonly digest: string; readonly sizeBytes: number }
}

export interface DescribeOptions {
  readonly walk: Walk
  readonly isHeld: (digest: string) => boolean
  /** Content of a configuration; undefined if it cannot be had. It is asked once for each manifest. */
  readonly readConfig: (descriptor: Descriptor) => Uint8Array | undefined
  readonly limits?: BundleLimits
}

/** Facts of a configuration. */
interface Configured {
  readonly platform?: Platform | undefined
  readonly createdAt?: number | undefined
  readonly title?: string | undefined
  readonly version?: string | undefined
  /** Digests of the unpacked layers, in the order in which they are applied. */
  readonly diffIds?: readonly unknown[]
}

interface Summary extends Omit<Configured, 'diffIds'> {
  readonly kind: EntryKind
  readonly files: readonly EntryFile[]
  /** Whether all layers are here, also those that may be missing. */
  readonly isWhole: boolean
}

/**
 * Describes the entries of a bundle that is whole (`requireWhole`).
 * @throws AppError for an image whose layers differ from its configuration, a bad name of a file, a definition that is not one
 */
export function describeEntries({
  walk,
  isHeld,
  readConfig,
  limits = bundleLimits,
}: DescribeOptions): Described {
  const summaries = new Map<string, Summary>()
  const sizes = new Map<string, number>()
  let steps = 0
  const takeSteps = (count: number, root: string) => {
    steps += count
    if (steps > limits.steps)
      throw refuseBundle(
        'TooManyDescriptors',
        root,
        'and other entries name the same blobs too often; split the bundle',
      )
  }

  const summaryOf = (digest: string, manifest: Manifest): Summary => {
    const known = summaries.get(digest)
    if (known) return known
    const configured = readConfigured(digest, manifest, readConfig)
    const kind = kindOf(manifest)
    const summary = {
      platform: configured.platform,
      createdAt: timeOf(manifest.annotations.get(keys.created)) ?? configured.createdAt,
      title: plainText(manifest.annotations.get(keys.title)) ?? configured.title,
      version: plainText(manifest.annotations.get(keys.version)) ?? configured.version,
      kind,
      files: kind === 'image' ? [] : filesOf(digest, manifest, kind),
      isWhole: manifest.layers.every((layer) => isHeld(layer.digest)),
    }
    summaries.set(digest, summary)
    return summary
  }

  /** Sum of the blobs below a digest, each counted once. */
  const sizeOf = (root: string): number => {
    const known = sizes.get(root)
    if (known !== undefined) return known
    const seen = new Set<string>()
    const waiting = [root]
    let sum = 0
    for (let digest = waiting.pop(); digest !== undefined; digest = waiting.pop()) {
      takeSteps(1, root)
      if (seen.has(digest) || !isHeld(digest)) continue
      seen.add(digest)
      sum += walk.needs.get(digest)?.sizeBytes ?? 0
      const document = walk.documents.get(digest)
      if (document?.kind === 'index') for (const child of document.children) waiting.push(child.digest)
      else if (document) for (const blob of [document.config, ...document.layers]) waiting.push(blob.digest)
    }
    sizes.set(root, sum)
    return sum
  }

  /** The manifests below an entry that are here, the first ones first, with the descriptor that names each. */
  const manifestsOf = (root: Descriptor) => {
    const found: { named: Descriptor; manifest: Manifest | undefined }[] = []
    const seen = new Set<string>()
    const waiting = [root]
    for (let named = waiting.pop(); named !== undefined; named = waiting.pop()) {
      takeSteps(1, root.digest)
      if (seen.has(named.digest)) continue
      seen.add(named.digest)
      const document = walk.documents.get(named.digest)
      if (document?.kind === 'index') waiting.push(...document.children.toReversed())
      else if (!named.isAttestation) found.push({ named, manifest: document })
    }
    return found
  }

  const architectures = new Set<string>()
  const entries = (walk.index()?.children ?? []).map((descriptor): Entry => {
    const { digest, mediaType, annotations: given } = descriptor
    const manifests = manifestsOf(descriptor)
    const carried = manifests.flatMap(({ named, manifest }) =>
      manifest === undefined ? [] : [{ named, summary: summaryOf(named.digest, manifest) }],
    )
    // An index of images may begin with another artifact.
    const first = carried.find(({ summary }) => summary.kind === 'image') ?? carried[0]
    const kind = isDefinition(descriptor) ? 'definition' : (first?.summary.kind ?? 'artifact')
    const platforms = manifests.flatMap(({ named, manifest }): EntryPlatform[] => {
      const summary = manifest && summaryOf(named.digest, manifest)
      const platform = named.platform ?? summary?.platform
      return platform ? [{ ...platform, digest: named.digest, isCarried: summary?.isWhole ?? false }] : []
    })
    if (kind === 'image' || kind === 'program')
      for (const { architecture, isCarried } of platforms) if (isCarried) architectures.add(architecture)
    const title = kind === 'image' ? undefined : (plainText(given.get(keys.title)) ?? first?.summary.title)
    const version =
      kind === 'image' ? undefined : (plainText(given.get(keys.version)) ?? first?.summary.version)
    const createdAt = timeOf(given.get(keys.created)) ?? first?.summary.createdAt
    const files = kind === 'image' ? [] : carried.flatMap(({ summary }) => summary.files)
    takeSteps(files.length, digest)
    return {
      digest,
      mediaType,
      kind,
      ...nameEntry(given, digest),
      ...(title === undefined ? {} : { title }),
      ...(version === undefined ? {} : { version }),
      sizeBytes: sizeOf(digest),
      platforms,
      ...(createdAt === undefined ? {} : { createdAt }),
      ...(files.length === 0 ? {} : { files }),
    }
  })
  const definition = findDefinition(walk)
  return { entries, architectures: [...architectures].sort(), ...(definition ? { definition } : {}) }
}

const isDefinition = ({ annotations: given }: Descriptor) => given.get(keys.contentType) === definitionMark

/** The archive of the definition inside: the first layer of the marked manifest. */
function findDefinition(walk: Walk): Described['definition'] {
  const marked = (walk.index()?.children ?? []).filter(isDefinition)
  const [first] = marked
  if (first === undefined) return undefined
  const other = marked.find(({ digest }) => digest !== first.digest)
  if (other)
    throw refuseBundle(
      'DefinitionTwice',
      other.place,
      `is a second definition beside ${first.place}; a bundle has at most one`,
    )
  const document = walk.documents.get(first.digest)
  const archive = document?.kind === 'manifest' ? document.layers[0] : undefined
  if (archive === undefined)
    throw refuseBundle(
      'DefinitionInvalid',
      first.place,
      'is marked as a definition, but is not a manifest with the archive as its first layer; build the bundle with edgehostctl content build --definition FILE',
    )
  return { digest: archive.digest, sizeBytes: archive.sizeBytes }
}

const kinds: ReadonlyMap<string, EntryKind> = new Map([
  [artifactTypes.program, 'program'],
  [artifactTypes.file, 'file'],
])

function kindOf({ artifactType, config, layers }: Manifest): EntryKind {
  if (config.mediaType === mediaTypes.chartConfig) return 'chart'
  const own = kinds.get(artifactType ?? config.mediaType)
  if (own) return own
  // A signature of cosign has the configuration of an image, and layers that are not file systems.
  const isImage =
    isImageConfig(config.mediaType) &&
    (layers.length === 0 || layers.some(({ mediaType }) => isImageLayer(mediaType)))
  return isImage ? 'image' : 'artifact'
}

// Text that could leave the folder to which a reader writes the files, or confuse a terminal.
const badTitle = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\\]|(?:^|\/)\.{0,2}(?:\/|$)/u
const titleCharacters = 1_000

function filesOf(manifest: string, { layers }: Manifest, kind: EntryKind): EntryFile[] {
  return layers.flatMap(({ annotations: given, digest, sizeBytes, place }) => {
    const title = given.get(keys.title)
    const isGood = title !== undefined && title.length <= titleCharacters && !badTitle.test(title)
    const executable = given.get(keys.fileMode) === '0755' ? { isExecutable: true as const } : {}
    if (isGood) return [{ title, manifest, digest, sizeBytes, ...executable }]
    if (kind !== 'program' && kind !== 'file') return []
    throw refuseBundle(
      'FileNameInvalid',
      `${place}.annotations.${keys.title}`,
      `is ${title === undefined ? 'missing' : showText(JSON.stringify(title))}; it must be a relative path without .. and control characters`,
    )
  })
}

/** Facts of the configuration of an image or chart; none where it cannot be read: the client sees what it is. */
function readConfigured(
  digest: string,
  manifest: Manifest,
  readConfig: DescribeOptions['readConfig'],
): Configured {
  const { config, layers } = manifest
  const isImage = isImageConfig(config.mediaType)
  if (!isImage && config.mediaType !== mediaTypes.chartConfig) return {}
  const bytes = readConfig(config)
  if (bytes === undefined) return {}
  const found = tolerant(() => readFields(parseFields(config.digest, bytes), isImage)) ?? {}
  if (kindOf(manifest) === 'image' && found.diffIds) checkLayers(digest, layers, found.diffIds)
  return found
}

/**
 * An image whose layers differ from its configuration starts nowhere. Early versions 25.0 of Docker write no layers, or all
 * in another order: https://github.com/moby/moby/issues/47065 and 47150.
 */
function checkLayers(digest: string, layers: readonly Descriptor[], diffIds: readonly unknown[]): void {
  const refuse = (what: string) =>
    refuseBundle(
      'LayersDiffer',
      digest,
      `is an image ${what}; early versions 25.0 of docker save write it so: save the image again with a current tool`,
    )
  if (diffIds.length !== layers.length)
    throw refuse(`of ${diffIds.length} layers by its configuration and of ${layers.length} by its manifest`)
  // Only a layer that is not compressed has the digest that the configuration names.
  const other = layers.findIndex(
    (layer, index) => isPlainLayer(layer.mediaType) && layer.digest !== diffIds[index],
  )
  if (other >= 0) throw refuse(`whose layer ${other} is another one by its configuration`)
}

function readFields(fields: Fields, isImage: boolean): Configured {
  if (!isImage)
    return {
      title: plainText(fields.optionalText('name')),
      version: plainText(fields.optionalText('version')),
    }
  const rootfs = fields.optionalObject('rootfs')
  return {
    platform: parsePlatform(fields),
    createdAt: timeOf(fields.optionalText('created')),
    ...(rootfs?.has('diff_ids') ? { diffIds: rootfs.items('diff_ids') } : {}),
  }
}

function tolerant<Result>(read: () => Result): Result | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

const invisible = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u

/** A name or version that can be shown; undefined for others. */
const plainText = (text: string | undefined): string | undefined =>
  text !== undefined && text !== '' && text.length <= 255 && !invisible.test(text) ? text : undefined

/** Milliseconds of a time; undefined for other text, and for the zero time that reproducible builds write. */
function timeOf(text: string | undefined): number | undefined {
  const time = text === undefined || text.length > 40 ? NaN : Date.parse(text)
  return time > 0 ? time : undefined
}
