import { createReadStream } from 'node:fs'
import { open, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decompress, isPacked, packedStartBytes } from '../../archive/compression.ts'
import { indexTar } from '../../archive/tar-index.ts'
import { Failure } from '../../ctl/exit-codes.ts'
import { readDockerArchive } from './docker-archive.ts'
import { readRange } from './layout.ts'
import { readLayoutPart } from './layout-part.ts'
import { describePlace, layoutFolderOf } from './layout-place.ts'
import { imageArchiveLimits as limits } from './limits.ts'
import type { ImageArchivePart, OpenArchive } from './part.ts'

export interface ImageArchiveOptions {
  readonly file: string
  /** The option with its value. */
  readonly place: string
  /** Makes a folder for what is unpacked; it is removed when the bundle is complete. */
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
    if (!isPacked(buffer)) return { path: file, members: await indexTar(handle, limits) }
    const path = join(await makeFolder(), 'archive.tar')
    const source = createReadStream(file, { highWaterMark: 1_048_576 })
    const plain = decompress(source, limits, ({ compressedBytes }) => onRead(compressedBytes, stats.size))
    await writeFile(path, plain, { flag: 'wx', mode: 0o600 })
    const unpacked = await open(path)
    try {
      return { path, members: await indexTar(unpacked, limits) }
    } finally {
      await unpacked.close()
    }
  } finally {
    await handle.close()
  }
}
