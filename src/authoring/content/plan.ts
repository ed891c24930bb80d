import { nameEntry } from '../../content/format/image-name.ts'
import { annotations, artifactTypes, mediaTypes } from '../../content/format/media-types.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { canonicalJson, compareTexts } from './canonical-json.ts'
import type { EntryDescriptor, Part, PlannedBlob } from './part.ts'

/** What is written into a bundle. */
export interface BundlePlan {
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

/** What an entry is asked for by: the name of an image, name and version of a chart or program, name of a file. */
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
