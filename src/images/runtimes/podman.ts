import { join } from 'node:path'
import { readRegularFile } from '../../system/regular-file.ts'
import {
  createDescriptions,
  describeImage,
  documentBytes,
  textsOf,
  createListBounds,
  budgetMs,
  listBytes,
  type Runtime,
  type SeenImage,
} from './describe.ts'
import { AnswerNotUnderstood, isAbsent } from './wire.ts'
import { readElements } from './json-elements.ts'

export interface PodmanOptions {
  /** Root folder of the machine. */
  readonly root: string
}

// In the order in which the tools read them: the first one that exists counts (containers-storage.conf(5)).
const settingsFiles = ['/etc/containers/storage.conf', '/usr/share/containers/storage.conf']
const usualFolder = '/var/lib/containers/storage'
const drivers = ['overlay', 'vfs', 'btrfs', 'zfs']
const pieceBytes = 65_536

/**
 * The images of Podman for root, which CRI-O has in the same place: read from their storage. Podman has no daemon, and its socket belongs
 * to systemd: each request would start podman.service, every minute again.
 * Source: https://github.com/containers/storage, images.go
 */
export function createPodman({ root }: PodmanOptions): Runtime {
  const descriptions = createDescriptions()
  let folder = usualFolder
  return {
    name: 'podman',
    unit: 'podman',
    get endpoint() {
      return folder
    },
    async read(signal) {
      const until = performance.now() + budgetMs
      folder = await findStorage(root)
      const bounds = createListBounds()
      const storage = join(root, folder)
      const lists = await Promise.all(
        drivers.map((driver) => readList(join(storage, `${driver}-images`), bounds, signal)),
      )
      const found = lists.filter((list) => list !== undefined)
      if (found.length === 0) return 'absent'
      const images = found.flat()
      const wanted = images.map(({ id, digest, folder }) => ({
        key: id,
        describe: () => describeImage(digest, (named) => readDocument(folder, named, digest)),
      }))
      await descriptions.update(wanted, until, signal)
      return images.map(({ id, digests, names }) => ({
        digests,
        names,
        description: { imageId: `sha256:${id}`, ...descriptions.of(id) },
      }))
    },
  }
}

interface StoredImage extends Pick<SeenImage, 'digests' | 'names'> {
  /** Hex of the digest of its configuration. */
  readonly id: string
  /** Digest of its manifest. */
  readonly digest: string
  readonly folder: string
}

/** Folder of the images: `graphroot`. */
async function findStorage(root: string): Promise<string> {
  for (const file of settingsFiles) {
    const settings = await readIfPresent(join(root, file), documentBytes)
    if (!settings) continue
    const folder = /^[ \t]*graphroot[ \t]*=[ \t]*["']([^"'\n]+)["']/m.exec(settings.toString())?.[1]
    return folder ?? usualFolder
  }
  return usualFolder
}

async function readList(
  folder: string,
  bounds: ReturnType<typeof createListBounds>,
  signal: AbortSignal,
): Promise<StoredImage[] | undefined> {
  const file = await readIfPresent(join(folder, 'images.json'), listBytes)
  if (!file) return undefined
  const images: StoredImage[] = []
  const limits = { maximumBytes: listBytes, elementBytes: 16 * documentBytes }
  for await (const image of readElements(piecesOf(file), limits)) {
    signal.throwIfAborted()
    const read = readImage(image, folder)
    bounds([read.id, ...read.digests, ...read.names])
    images.push(read)
  }
  return images
}

function readImage(image: Readonly<Record<string, unknown>>, folder: string): StoredImage {
  const { id, names, 'big-data-names': parts, 'big-data-digests': sums } = image
  if (typeof id !== 'string' || !/^[0-9a-f]{64}$/.test(id))
    throw new AnswerNotUnderstood('an image has no id')
  const { manifest } = (sums ?? {}) as Readonly<Record<string, unknown>>
  const own = typeof manifest === 'string' ? manifest : ''
  // The index that it was pulled by is kept beside its manifest.
  const named = textsOf(parts).flatMap((part) => /^manifest-(sha256:[0-9a-f]{64})$/.exec(part)?.[1] ?? [])
  return {
    id,
    digest: own,
    folder: join(folder, id),
    names: textsOf(names),
    digests: [...named.filter((each) => each !== own), ...named.filter((each) => each === own)],
  }
}

function* piecesOf(file: Buffer): Generator<Buffer> {
  for (let at = 0; at < file.length; at += pieceBytes) yield file.subarray(at, at + pieceBytes)
}

/** @param own digest of the manifest, which has a file of its own name */
const readDocument = (folder: string, digest: string, own: string) =>
  readIfPresent(
    join(folder, digest === own ? 'manifest' : `=${Buffer.from(digest).toString('base64')}`),
    documentBytes,
  )

async function readIfPresent(path: string, maximumBytes: number): Promise<Buffer | undefined> {
  try {
    return (await readRegularFile(path, maximumBytes)).bytes
  } catch (error) {
    if (isAbsent(error)) return undefined
    throw error
  }
}
