import { shellWord } from '../../base/printable.ts'
import { closeSync, openSync, readSync } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { digestOf } from '../../content/format/descriptor.ts'
import { documentTooLarge } from '../../content/format/document.ts'
import { describeEntries, type Described } from '../../content/format/entry.ts'
import { parseFields } from '../../content/format/json-fields.ts'
import { bundleLimits, refuseBundle, showText } from '../../content/format/refusal.ts'
import { createWalk, requireWhole, sizeDiffers, type Need, type Walk } from '../../content/format/walk.ts'
import { type FileRange, unreadable, type EntryDescriptor, type Part } from './part.ts'
import { join } from 'node:path'
import { readRegularFile } from '../../system/regular-file.ts'

const marker = '/oci-layout'

/** The folder of an archive that has a layout, if it is not the top; undefined for other members than `oci-layout`. */
export const layoutFolderOf = (path: string): string | undefined =>
  path.endsWith(marker) ? path.slice(0, -marker.length) : undefined

/** Follows `is missing`. */
export const describePlace = (folder: string): string =>
  `at its top, the layout is in the folder ${folder} of the archive; pack what is in that folder: tar -C ${shellWord(folder)} -cf FILE oci-layout index.json blobs`

/** An OCI image layout: a folder, or an archive of one. */
export interface LayoutSource {
  /** Content of `oci-layout` or `index.json`. */
  read(name: 'oci-layout' | 'index.json', maximumBytes: number): Promise<Uint8Array>
  find(digest: string): Promise<FoundBlob | undefined>
}

/** A blob of a layout. */
export interface FoundBlob {
  readonly sizeBytes: number
  /** Missing if the content was not kept, since it cannot be an index or a manifest. */
  readonly from?: FileRange
}

/** A layout whose index and manifests were read. */
export interface ReadLayout {
  readonly index: Uint8Array
  readonly walk: Walk
  /** The blobs that the layout names and has. */
  readonly held: ReadonlyMap<string, FoundBlob>
}

const layoutFileBytes = 4_096

/**
 * Reads the documents of a layout, and checks that every named blob is there. The content of other blobs is not read.
 * Source: https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md
 * @throws AppError with the file or blob and the field; errors of the source as they are
 */
export async function readLayout(source: LayoutSource): Promise<ReadLayout> {
  const file = parseFields('oci-layout', await source.read('oci-layout', layoutFileBytes))
  const version = file.text('imageLayoutVersion')
  if (version !== '1.0.0')
    throw refuseBundle(
      'FieldInvalid',
      'oci-layout#imageLayoutVersion',
      `is ${showText(version)}; only 1.0.0 is known`,
    )
  const index = await source.read('index.json', bundleLimits.indexFileBytes)
  const walk = createWalk(bundleLimits)
  const held = new Map<string, FoundBlob>()
  const waiting = [...walk.addIndexFile(index)]
  for (let need = waiting.pop(); need !== undefined; need = waiting.pop()) {
    const found = await source.find(need.digest)
    if (found === undefined) continue
    if (found.sizeBytes !== need.sizeBytes) throw sizeDiffers(need, found.sizeBytes)
    held.set(need.digest, found)
    if (need.kind === 'document')
      waiting.push(...walk.addDocument(need.digest, await readDocument(need, found)))
  }
  requireWhole(walk, (digest) => held.has(digest))
  return { index, walk, held }
}

/**
 * The content of a layout, as a host reads it.
 * @throws AppError for content that a host refuses
 */
export const describeLayout = ({ walk, held }: ReadLayout): Described =>
  describeEntries({
    walk,
    isHeld: (digest) => held.has(digest),
    readConfig: ({ digest }) => readConfig(held.get(digest)),
  })

function readConfig(found: FoundBlob | undefined): Buffer | undefined {
  if (found?.from === undefined || found.sizeBytes > bundleLimits.configBytes) return undefined
  const file = openSync(found.from.path, 'r')
  try {
    const bytes = Buffer.alloc(found.sizeBytes)
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, found.from.start ?? 0))
  } finally {
    closeSync(file)
  }
}

/** Reads a document that others are found by; its content is checked before it is believed. */
async function readDocument({ digest, descriptor }: Need, { sizeBytes, from }: FoundBlob): Promise<Buffer> {
  if (sizeBytes > bundleLimits.documentBytes) throw documentTooLarge(descriptor, sizeBytes, bundleLimits)
  if (from === undefined) throw refuseBundle('JsonInvalid', digest, 'is not JSON; build the bundle again')
  const bytes = await readRange(from, sizeBytes)
  if (digestOf(bytes) !== digest)
    throw new Error(`${digest} is damaged: the digest of its content is ${digestOf(bytes)}`)
  return bytes
}

/** Reads a small file, or a small part of one. */
export async function readRange({ path, start = 0 }: FileRange, sizeBytes: number): Promise<Buffer> {
  const file = await open(path)
  try {
    const bytes = Buffer.alloc(sizeBytes)
    for (let total = 0; total < sizeBytes;) {
      const { bytesRead } = await file.read(bytes, total, sizeBytes - total, start + total)
      if (bytesRead === 0) throw new Error(`${path} was cut off while it was read`)
      total += bytesRead
    }
    return bytes
  } finally {
    await file.close()
  }
}

/**
 * An OCI image layout in a folder. Links in it are followed, since every digest is checked.
 * @param place as the user has named it, for messages
 */
export function openLayoutFolder(folder: string, place: string): LayoutSource {
  return {
    async find(digest) {
      const path = join(folder, 'blobs', digest.replace(':', '/'))
      const stats = await stat(path).catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw unreadable(`${place}, ${digest}`, error)
      })
      if (stats === undefined) return undefined
      if (!stats.isFile()) throw unreadable(`${place}, ${digest}`, new Error('it is not a regular file'))
      return { sizeBytes: stats.size, from: { path } }
    },
    async read(name, maximumBytes) {
      try {
        return (await readRegularFile(join(folder, name), maximumBytes)).bytes
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        const problem = await missingPart(folder, name, code)
        throw problem === undefined ? unreadable(`${place}, ${name}`, error) : unreadable(place, problem)
      }
    },
  }
}

async function missingPart(
  folder: string,
  name: string,
  code: string | undefined,
): Promise<Error | undefined> {
  if (code !== 'ENOENT' && code !== 'ENOTDIR') return undefined
  const stats = await stat(folder).catch((error: unknown) => error as Error)
  if (stats instanceof Error) return stats
  if (!stats.isDirectory()) return new Error('it is a file; for an archive of images use --image-archive')
  // The form that skopeo calls dir, podman docker-dir; it has no name of the image.
  const isOther = await stat(join(folder, 'manifest.json')).then(
    () => true,
    () => false,
  )
  const advice = isOther ? `; make one of it: skopeo copy dir:${folder} oci:LAYOUT:NAME:TAG` : ''
  return new Error(`it is not an OCI image layout: ${name} is missing${advice}`)
}

/**
 * Every image that the index.json of a layout lists, with its annotations and all that the layout has of it.
 * @param place the option with its value
 * @throws what `readLayout` throws, and AppError for content that a host would refuse
 */
export async function readLayoutPart(source: LayoutSource, place: string): Promise<Part> {
  const layout = await readLayout(source)
  describeLayout(layout)
  const { index, walk, held } = layout
  const { manifests } = JSON.parse(Buffer.from(index).toString()) as { manifests: EntryDescriptor[] }
  const blobs = [...held].flatMap(([digest, { sizeBytes, from }]) =>
    from === undefined
      ? []
      : [
          {
            digest,
            sizeBytes,
            from,
            place: `${place}, ${digest}`,
            isDocument: walk.needs.get(digest)?.kind === 'document',
          },
        ],
  )
  return { place, entries: manifests, blobs }
}
