import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readRegularFile } from '../../system/regular-file.ts'
import { unreadable } from './file-blob.ts'
import type { LayoutSource } from './layout.ts'

/**
 * An OCI image layout in a folder. Links in it are followed, since the digests decide what is taken.
 * @param place what the user has named, for messages
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
