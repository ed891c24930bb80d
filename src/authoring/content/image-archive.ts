import { bundleArchiveLimits, type ArchiveLimits } from '../../archive/limits.ts'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { posix, join } from 'node:path'
import { decompress, isPacked, packedStartBytes } from '../../archive/compression.ts'
import { type IndexedMember, indexTar } from '../../archive/tar-index.ts'
import { parsePlatform } from '../../content/format/descriptor.ts'
import { formatImageName, parseImageName } from '../../content/format/image-name.ts'
import { parseFields } from '../../content/format/json-fields.ts'
import { bundleLimits } from '../../content/format/refusal.ts'
import { annotations, mediaTypes } from '../../content/format/media-types.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { oneLine } from '../../ctl/layout.ts'
import {
  descriptorOf,
  makeBlob,
  makeDocument,
  type ArtifactBlob,
  readFileBlob,
  type EntryDescriptor,
  type ImageArchivePart,
  type OpenArchive,
  type PlannedBlob,
} from './part.ts'
import { readRange, readLayoutPart, describePlace, layoutFolderOf } from './layout.ts'
import { open, writeFile } from 'node:fs/promises'

/** Archives of images have links in the form of older tools, and files beside every layer. */
const imageArchiveLimits: ArchiveLimits = {
  ...bundleArchiveLimits,
  noun: 'archive of images',
  areLinksAllowed: true,
  members: 2_400_000,
}

/** An image as manifest.json lists it. */
interface SavedImage {
  readonly config: string
  readonly tags: readonly string[]
  readonly layers: readonly string[]
}

/**
 * Makes OCI manifests of an archive of docker save. The layers stay as they are. An archive has no manifest of a
 * registry, so the digests of these are new, and the same for the same archive.
 * Source: https://github.com/moby/docker-image-spec/blob/v1.3.1/spec.md#combined-image-json--filesystem-changeset-format
 * @throws Failure with the option, the member and the reason
 */
async function readDockerArchive(archive: OpenArchive, place: string): Promise<ImageArchivePart> {
  const refuse = (what: string) => new Failure('failed', `${place}: ${what}`)
  const find = createFind(archive.members, refuse)
  const readMember = async (name: string, most: number): Promise<Buffer> => {
    const { start, sizeBytes } = find(name)
    if (sizeBytes > most) throw refuse(`${oneLine(name)} has ${sizeBytes} bytes; ${most} are allowed`)
    return readRange({ path: archive.path, start }, sizeBytes)
  }

  /** Layers by their place in the archive: several images have one layer. */
  const layers = new Map<string, ArtifactBlob>()
  const layerOf = async (name: string, diffId: string): Promise<ArtifactBlob> => {
    const { start, sizeBytes } = find(name)
    const key = `${start} ${diffId}`
    const known = layers.get(key)
    if (known) return known
    const range = { path: archive.path, start }
    const layerPlace = `${place}, ${oneLine(name)}`
    const compression = compressionOf(await readRange(range, Math.min(4, sizeBytes)))
    let blob: PlannedBlob = { digest: diffId, sizeBytes, isDocument: false, from: range, place: layerPlace }
    if (compression !== '') {
      blob = await readFileBlob({ ...range, sizeBytes, place: layerPlace })
      if ((await unpackedDigest(archive.path, start, sizeBytes)) !== diffId)
        throw refuse(
          `${oneLine(name)} is damaged: its content is not ${diffId}, which the configuration names`,
        )
    }
    const layer = { blob, mediaType: `${mediaTypes.layer}${compression}` }
    layers.set(key, layer)
    return layer
  }

  const entries: EntryDescriptor[] = []
  const blobs: PlannedBlob[] = []
  const converted: string[] = []
  for (const saved of parseSaved(await readMember('manifest.json', bundleLimits.documentBytes), refuse)) {
    const bytes = await readMember(saved.config, bundleLimits.configBytes)
    const config: ArtifactBlob = {
      blob: makeBlob(`${place}, ${oneLine(saved.config)}`, bytes),
      mediaType: mediaTypes.config,
    }
    const named = /(?:^|\/|sha256:)([0-9a-f]{64})(?:\.json)?$/.exec(saved.config)?.[1]
    if (named !== undefined && config.blob.digest !== `sha256:${named}`)
      throw refuse(`${oneLine(saved.config)} is damaged: its content is ${config.blob.digest}`)
    const { platform, diffIds } = parseConfig(saved.config, bytes, refuse)
    if (diffIds.length !== saved.layers.length)
      throw refuse(
        `manifest.json gives ${oneLine(saved.config)} ${saved.layers.length} layers, and its configuration ${diffIds.length}; save the image again`,
      )
    const own: ArtifactBlob[] = []
    for (const [index, layer] of saved.layers.entries()) own.push(await layerOf(layer, diffIds[index] ?? ''))
    const manifest = makeDocument(place, {
      schemaVersion: 2,
      mediaType: mediaTypes.manifest,
      config: descriptorOf(config),
      layers: own.map(descriptorOf),
    })
    blobs.push(manifest, config.blob, ...own.map(({ blob }) => blob))
    const entry = {
      ...descriptorOf({ blob: manifest, mediaType: mediaTypes.manifest }),
      ...(platform && { platform }),
    }
    if (saved.tags.length === 0) entries.push(entry)
    for (const tag of saved.tags) entries.push({ ...entry, annotations: nameAnnotations(tag, refuse) })
    converted.push(...(saved.tags.length === 0 ? [manifest.digest] : saved.tags))
  }
  return { place, entries, blobs, converted }
}

type Refuse = (what: string) => Failure

/**
 * Finds a member by its name. Links lead to other members: docker and podman write a layer that several images have
 * once, and links to it. They are resolved among the members alone, never on a disk.
 */
function createFind(members: OpenArchive['members'], refuse: Refuse): (name: string) => IndexedMember {
  const mostLinks = 40
  return (name) => {
    let path = inside(name)
    for (let links = 0; links <= mostLinks; links += 1) {
      const member = path === undefined ? undefined : members.get(path)
      if (path === undefined || member === undefined)
        throw refuse(`${oneLine(name)}, which its manifest.json names, is not in the archive`)
      if (member.kind === 'file') return member
      if (member.kind === 'folder') throw refuse(`${oneLine(name)} is a folder; it must be a file`)
      // A hard link counts from the top of the archive, a symbolic link from its own folder.
      const { kind, target } = member
      if (kind === 'hardLink') path = inside(target)
      else path = target.startsWith('/') ? undefined : inside(posix.join(posix.dirname(path), target))
    }
    throw refuse(`${oneLine(name)} is a link that leads in a circle`)
  }
}

/** A path below the top of the archive; undefined for one that leaves it. */
function inside(name: string): string | undefined {
  const path = posix.normalize(name)
  return path.startsWith('/') || path === '..' || path.startsWith('../') ? undefined : path
}

function parseSaved(bytes: Buffer, refuse: Refuse): SavedImage[] {
  const wrong = (what: string) => refuse(`manifest.json ${what}`)
  let value: unknown
  try {
    value = JSON.parse(bytes.toString())
  } catch {
    throw wrong('is not valid JSON')
  }
  if (!Array.isArray(value) || value.length === 0) throw wrong('lists no images')
  return value.map((each: unknown, index) => {
    const { Config: config, RepoTags: tags, Layers: layers } = (each ?? {}) as Record<string, unknown>
    if (typeof config !== 'string' || config === '') throw wrong(`[${index}].Config is not a name`)
    if (!isTexts(layers ?? [])) throw wrong(`[${index}].Layers is not a list of names`)
    if (!isTexts(tags ?? [])) throw wrong(`[${index}].RepoTags is not a list of names`)
    return { config, layers: (layers ?? []) as string[], tags: (tags ?? []) as string[] }
  })
}

const isTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((each) => typeof each === 'string' && each !== '')

function parseConfig(name: string, bytes: Buffer, refuse: Refuse) {
  const fields = parseFields(name, bytes)
  const platform = parsePlatform(fields)
  const { rootfs } = JSON.parse(bytes.toString()) as { rootfs?: { diff_ids?: unknown } }
  const found: unknown = rootfs?.diff_ids ?? []
  if (
    !Array.isArray(found) ||
    !found.every((each) => typeof each === 'string' && /^sha256:[0-9a-f]{64}$/.test(each))
  )
    throw refuse(`${oneLine(name)} has no list of the digests of its layers; save the image again`)
  return { platform, diffIds: found as string[] }
}

function nameAnnotations(text: string, refuse: Refuse): Readonly<Record<string, string>> {
  const name = parseImageName(text)
  if ('problem' in name) throw refuse(`the tag ${oneLine(text)} in manifest.json ${name.problem}`)
  const whole = formatImageName(name)
  // Both: ctr and Docker find an image by the one, skopeo and podman by the other.
  return { [annotations.imageName]: whole, [annotations.refName]: whole }
}

/** The ending of the media type of a layer, by its first bytes. */
function compressionOf(start: Buffer): '' | '+gzip' | '+zstd' {
  if (start.length >= 2 && start[0] === 0x1f && start[1] === 0x8b) return '+gzip'
  return isPacked(start) ? '+zstd' : ''
}

async function unpackedDigest(path: string, start: number, sizeBytes: number): Promise<string> {
  const hash = createHash('sha256')
  const source = createReadStream(path, { start, end: start + sizeBytes - 1, highWaterMark: 1_048_576 })
  for await (const chunk of decompress(source, imageArchiveLimits)) hash.update(chunk)
  return `sha256:${hash.digest('hex')}`
}

interface ImageArchiveOptions {
  readonly file: string
  /** The option with its value. */
  readonly place: string
  /** Makes a folder for unpacked files; it is removed when the bundle is complete. */
  readonly makeFolder: () => Promise<string>
  /** Called with the number of bytes of the file that were read so far, and its size. */
  readonly onRead: (done: number, total: number) => void
}

/**
 * `--image-archive FILE`: an OCI archive, or what docker save wrote before version 25 and podman and skopeo call
 * docker-archive. A compressed one is unpacked beside the bundle first, since its parts are needed in another order.
 * @throws Failure if it is neither; AppError with the member, file or field; the system's errors as they are
 */
export async function readImageArchive(options: ImageArchiveOptions): Promise<ImageArchivePart> {
  const { file, place } = options
  const archive = await openArchive(options)
  const { path, members } = archive
  if (members.has('oci-layout')) {
    const part = await readLayoutPart(
      {
        async read(name, maximumBytes) {
          const member = members.get(name)
          if (member?.kind !== 'file') throw new Failure('failed', `${place} has no ${name}`)
          if (member.sizeBytes > maximumBytes)
            throw new Failure('failed', `${place}: ${name} has more than ${maximumBytes} bytes`)
          return readRange({ path, start: member.start }, member.sizeBytes)
        },
        async find(digest) {
          const member = members.get(`blobs/${digest.replace(':', '/')}`)
          if (member?.kind !== 'file') return undefined
          return { sizeBytes: member.sizeBytes, from: { path, start: member.start } }
        },
      },
      place,
    )
    return { ...part, converted: [] }
  }
  if (members.has('manifest.json')) return readDockerArchive(archive, place)
  const folder = [...members.keys()].map(layoutFolderOf).find((found) => found !== undefined)
  if (folder !== undefined)
    throw new Failure('failed', `${place}: oci-layout is missing ${describePlace(folder)}`)
  throw new Failure(
    'failed',
    members.has('repositories')
      ? `${place} was written by a docker save before version 1.10; save the image again with a current version`
      : `${place}: ${file} is not an archive of images: it has neither oci-layout nor manifest.json`,
  )
}

async function openArchive({ file, makeFolder, onRead }: ImageArchiveOptions): Promise<OpenArchive> {
  const handle = await open(file)
  try {
    const stats = await handle.stat()
    if (stats.isDirectory()) throw new Error('it is a folder; for the folder of a layout use --oci-layout')
    if (!stats.isFile()) throw new Error('it is not a regular file')
    const { buffer } = await handle.read(Buffer.alloc(packedStartBytes), 0, packedStartBytes, 0)
    if (!isPacked(buffer)) return { path: file, members: await indexTar(handle, imageArchiveLimits) }
    const path = join(await makeFolder(), 'archive.tar')
    const source = createReadStream(file, { highWaterMark: 1_048_576 })
    const plain = decompress(source, imageArchiveLimits, ({ compressedBytes }) =>
      onRead(compressedBytes, stats.size),
    )
    await writeFile(path, plain, { flag: 'wx', mode: 0o600 })
    const unpacked = await open(path)
    try {
      return { path, members: await indexTar(unpacked, imageArchiveLimits) }
    } finally {
      await unpacked.close()
    }
  } finally {
    await handle.close()
  }
}
