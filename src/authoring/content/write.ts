import { nameEntry } from '../../content/format/image-name.ts'
import { annotations, artifactTypes, mediaTypes } from '../../content/format/media-types.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import {
  canonicalJson,
  compareTexts,
  type EntryDescriptor,
  type Part,
  type PlannedBlob,
  unreadable,
} from './part.ts'
import { stat } from 'node:fs/promises'
import {
  createBlockWriter,
  type BlockWriter,
  createFileSink,
  createFrameSink,
  createGzipSink,
} from '../../archive/sinks.ts'
import { packFile } from '../../archive/pack-file.ts'
import { memberHeader } from '../../archive/tar-member.ts'
import { tarEnd, tarPadding } from '../../archive/ustar.ts'
import { digestOf } from '../../content/format/descriptor.ts'
import { systemReason } from '../../errors/system-reason.ts'
import { placeFile } from '../../system/place-file.ts'

/** The content of a bundle to be written. */
interface BundlePlan {
  readonly entries: readonly EntryDescriptor[]
  /** The bytes of index.json. */
  readonly index: Buffer
  /** Each once, in the order of the archive: indexes and manifests, then the others, each by digest. */
  readonly blobs: readonly PlannedBlob[]
  readonly contentBytes: number
}

/**
 * Combines parts into a bundle. The same content gives the same plan, in whatever order the parts are given.
 * @throws Failure if one name stands for different content
 */
export function planBundle(parts: readonly Part[]): BundlePlan {
  const entries = new Map<string, EntryDescriptor>()
  const names = new Map<string, { readonly digest: string; readonly place: string }>()
  const blobs = new Map<string, PlannedBlob>()
  for (const part of parts) {
    for (const entry of part.entries) {
      const name = nameOf(entry)
      entries.set(canonicalJson([name ?? '', entry]), entry)
      if (name === undefined) continue
      const present = names.get(name)
      if (present !== undefined && present.digest !== entry.digest)
        throw new Failure(
          'failed',
          part.place === present.place
            ? `${part.place} has ${name} twice, with different content; give one of them another name`
            : `${part.place} and ${present.place} both have ${name}, with different content; leave one of them out`,
        )
      names.set(name, { digest: entry.digest, place: part.place })
    }
    for (const blob of part.blobs) addBlob(blobs, blob)
  }
  const sorted = [...entries].sort(([one], [other]) => compareTexts(one, other)).map(([, entry]) => entry)
  const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests: sorted }
  const ordered = [...blobs.values()].sort(
    (one, other) =>
      Number(other.isDocument) - Number(one.isDocument) || compareTexts(one.digest, other.digest),
  )
  return {
    entries: sorted,
    index: Buffer.from(canonicalJson(index)),
    blobs: ordered,
    contentBytes: ordered.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  }
}

/** One digest with two sizes: one of the sources lies, and the archive needs the size before the content. */
function addBlob(blobs: Map<string, PlannedBlob>, blob: PlannedBlob): void {
  const present = blobs.get(blob.digest)
  if (present === undefined) blobs.set(blob.digest, blob)
  else if (present.sizeBytes !== blob.sizeBytes)
    throw new Failure(
      'failed',
      `${blob.place} has ${blob.sizeBytes} bytes and ${present.place} ${present.sizeBytes}, but both are named ${blob.digest}; one of them is damaged`,
    )
}

const namedTypes: ReadonlySet<unknown> = new Set([
  mediaTypes.chartConfig,
  artifactTypes.program,
  artifactTypes.file,
])

/** The key to an entry for readers: the name of an image, name and version of a chart or program, name of a file. */
function nameOf({ annotations: given = {}, digest, artifactType }: EntryDescriptor): string | undefined {
  const { name, tag } = nameEntry(new Map(Object.entries(given)), digest)
  if (name !== undefined) return tag === undefined ? undefined : `the image ${name}:${tag}`
  const [title, version] = [given[annotations.title], given[annotations.version]]
  if (title === undefined || !namedTypes.has(artifactType)) return undefined
  const kind =
    artifactType === artifactTypes.file
      ? 'file'
      : artifactType === artifactTypes.program
        ? 'program'
        : 'chart'
  return `the ${kind} ${title}${version === undefined ? '' : ` ${version}`}`
}

interface WriteOptions {
  readonly plan: BundlePlan
  /** Its ending names the compression. */
  readonly file: string
  /** Called with the temporary path under which the bundle is written. */
  readonly onBegin: (temporary: string) => void
  /** Called with the bytes packed so far. */
  readonly onProgress: (done: number) => void
}

/** Whether a file name ends in an extension of a bundle. */
export const isBundleName = (file: string): boolean => /\.(?:tar|tgz|tar\.gz|tar\.zst)$/.test(file)

/**
 * Writes a bundle to a temporary file beside its path and renames it when it is complete and on the disk. Every blob is
 * compared with its digest while it is copied. The same plan gives the same bytes with the same version of this program.
 * @returns size of the file in bytes
 * @throws Failure if a blob is damaged or unreadable, or the file cannot be written; Error if a file changes meanwhile
 */
export async function writeBundle({ plan, file, onBegin, onProgress }: WriteOptions): Promise<number> {
  await placeFile({
    path: file,
    mode: 0o666,
    onBegin,
    async write(handle) {
      const createSink = file.endsWith('.zst')
        ? createFrameSink
        : file.endsWith('.tar')
          ? createFileSink
          : createGzipSink
      const writer = createBlockWriter(createSink(handle))
      try {
        await pack(plan, writer, onProgress)
      } catch (error) {
        await writer.abandon()
        throw error
      }
    },
  }).catch((error: unknown) => {
    throw (error as NodeJS.ErrnoException).code === undefined ? error : unwritable(file, error)
  })
  return (await stat(file)).size
}

/** The failure for a bundle that cannot be written; `error` is of the system. */
export const unwritable = (file: string, error: unknown): Failure =>
  new Failure(
    'failed',
    `--output ${file} cannot be written: ${systemReason(error as NodeJS.ErrnoException)}`,
    { cause: error },
  )

async function pack(
  { index, blobs }: BundlePlan,
  writer: BlockWriter,
  onProgress: WriteOptions['onProgress'],
) {
  await putBytes(writer, 'oci-layout', Buffer.from('{"imageLayoutVersion":"1.0.0"}'))
  await putBytes(writer, 'index.json', index)
  let done = 0
  for (const blob of blobs) {
    await putBlob(writer, blob, (bytes) => {
      done += bytes
      onProgress(done)
    })
  }
  await writer.put(tarEnd())
  await writer.end()
}

async function putBytes(writer: BlockWriter, name: string, bytes: Uint8Array): Promise<void> {
  await writer.put(memberHeader(name, bytes.length))
  await writer.put(Buffer.from(bytes))
  await writer.put(tarPadding(bytes.length))
}

async function putBlob(
  writer: BlockWriter,
  { digest, sizeBytes, from, place }: PlannedBlob,
  onPacked: (bytes: number) => void,
): Promise<void> {
  const name = `blobs/${digest.replace(':', '/')}`
  if (from instanceof Uint8Array) {
    await putBytes(writer, name, from)
    onPacked(sizeBytes)
    return
  }
  await writer.put(memberHeader(name, sizeBytes))
  const sum = await packFile({ ...from, sizeBytes, name: place, writer, onPacked }).catch(
    (error: unknown) => {
      // An error of the output passes through here too.
      const { syscall } = error as NodeJS.ErrnoException
      throw syscall === 'open' || syscall === 'read' ? unreadable(place, error) : error
    },
  )
  const found = `sha256:${sum}`
  if (found !== digest)
    throw new Failure('failed', `${place} is damaged: it is named ${digest}, but its content is ${found}`)
  await writer.put(tarPadding(sizeBytes))
}

/** The identity of the bundle: the digest of its index.json. */
export const identityOf = ({ index }: BundlePlan): string => digestOf(index)
