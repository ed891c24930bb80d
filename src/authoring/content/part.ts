import type { IndexedMember } from '../../archive/tar-index.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { oneLine } from '../../ctl/layout.ts'
import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { systemReason } from '../../errors/system-reason.ts'
import { digestOf } from '../../content/format/descriptor.ts'
import { mediaTypes } from '../../content/format/media-types.ts'

/** A descriptor of index.json, with the fields that it has in its source. */
export interface EntryDescriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
  readonly annotations?: Readonly<Record<string, string>>
  readonly [field: string]: unknown
}

/** A blob of the bundle and where its content is. */
export interface PlannedBlob {
  readonly digest: string
  readonly sizeBytes: number
  /** Whether it is an index or a manifest; these come first in the archive. */
  readonly isDocument: boolean
  readonly from: Uint8Array | FileRange
  /** The option and file that it comes from, for messages. */
  readonly place: string
}

/** A file, or a part of one. */
export interface FileRange {
  readonly path: string
  /** Without it the blob is the whole file. */
  readonly start?: number
}

/** Addition of one value of an option to the bundle. */
export interface Part {
  /** The option with its value: `--chart app.tgz`. */
  readonly place: string
  readonly entries: readonly EntryDescriptor[]
  readonly blobs: readonly PlannedBlob[]
}

/** Addition of an archive of images to a bundle. */
export interface ImageArchivePart extends Part {
  /** Names of its images whose manifest is made here, so that no registry has their digest. */
  readonly converted: readonly string[]
}

/** An archive whose members can be read in any order. */
export interface OpenArchive {
  readonly path: string
  readonly members: ReadonlyMap<string, IndexedMember>
}

/** JSON with the fields of every object in one order: the same value gives the same bytes. */
export const canonicalJson = (value: unknown): string => JSON.stringify(sortFields(value))

function sortFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortFields)
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).sort(([one], [other]) => compareTexts(one, other))
  return Object.fromEntries(fields.map(([name, field]) => [name, sortFields(field)]))
}

/** Order by code units, since the order of a locale would depend on the machine. */
export const compareTexts = (one: string, other: string): number => (one < other ? -1 : Number(one > other))

/**
 * Splits a value such as `NAME=FILE` at the first equals sign.
 * @param place the option with its value
 * @param form of the value, for the message
 * @throws Failure
 */
export function splitNamed(place: string, value: string, form: string): { name: string; path: string } {
  const equals = value.indexOf('=')
  const [name, path] = [value.slice(0, Math.max(equals, 0)), value.slice(equals + 1)]
  if (name === '' || path === '') throw new Failure('usage', `${place} must be written as ${form}`)
  return { name, path }
}

const nameCharacters = 255
const badName = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\\]|(?:^|\/)\.{0,2}(?:\/|$)/u

/**
 * Names in a bundle are relative paths, since a reader may write a file by its name.
 * @param what the name is, for the message
 * @throws Failure
 */
export function checkName(place: string, what: string, name: string): void {
  if (name.length > nameCharacters)
    throw new Failure(
      'usage',
      `${place}: ${what} has ${name.length} characters; ${nameCharacters} are allowed`,
    )
  if (badName.test(name))
    throw new Failure(
      'usage',
      `${place}: ${what} ${oneLine(name)} must be a relative path without .., backslashes and control characters`,
    )
}

/**
 * The name of an entry in a layout, for tools that find entries by it. It is no name of an image, which would contain a
 * colon. A tag may not contain a plus, and Helm replaces it so.
 */
export const referenceOf = (name: string, version: string): string =>
  `${name.replaceAll('/', '-')}-${version.replaceAll('+', '_')}`

interface FileBlobOptions extends FileRange {
  /** Without it the blob is the whole file. */
  readonly sizeBytes?: number
  /** The option and the file, for messages. */
  readonly place: string
  /** Called with the number of bytes of each chunk that was read. */
  readonly onRead?: (bytes: number) => void
}

const chunkBytes = 1_048_576

/**
 * A blob of a file, or of a part of one, which is read for its digest.
 * @throws Failure with the place if the file cannot be read
 */
export async function readFileBlob(options: FileBlobOptions): Promise<PlannedBlob> {
  const { path, start, place, onRead = () => undefined } = options
  const hash = createHash('sha256')
  const sizeBytes = await eachChunk(options, (chunk) => {
    hash.update(chunk)
    onRead(chunk.length)
  }).catch((error: unknown) => {
    throw unreadable(place, error)
  })
  return {
    digest: `sha256:${hash.digest('hex')}`,
    sizeBytes,
    isDocument: false,
    from: start === undefined ? { path } : { path, start },
    place,
  }
}

async function eachChunk({ path, start = 0, sizeBytes }: FileBlobOptions, use: (chunk: Buffer) => void) {
  const file = await open(path)
  const buffer = Buffer.allocUnsafe(chunkBytes)
  try {
    const stats = await file.stat()
    if (!stats.isFile()) throw new Error('it is not a regular file')
    const wanted = sizeBytes ?? stats.size
    let total = 0
    while (total < wanted) {
      const { bytesRead } = await file.read(buffer, 0, Math.min(chunkBytes, wanted - total), start + total)
      if (bytesRead === 0) throw new Error('it was cut off while it was read')
      use(buffer.subarray(0, bytesRead))
      total += bytesRead
    }
    return total
  } finally {
    await file.close()
  }
}

/** The failure for a file or folder that an option names. */
export const unreadable = (place: string, error: unknown): Failure =>
  error instanceof Failure
    ? error
    : new Failure('failed', `${place} cannot be read: ${systemReason(error as NodeJS.ErrnoException)}`, {
        cause: error,
      })

type Annotations = Readonly<Record<string, string>>

/** A blob of an artifact, and its fields in the manifest. */
export interface ArtifactBlob {
  readonly blob: PlannedBlob
  readonly mediaType: string
  readonly annotations?: Annotations
}

interface ArtifactOptions {
  /** Without it the media type of the configuration is its type, as for charts. */
  readonly artifactType?: string
  /** Without it the empty configuration. */
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
