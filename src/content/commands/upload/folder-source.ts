import { createReadStream, statSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { Failure } from '../../../ctl/exit-codes.ts'
import type { BundleSource } from './source.ts'

const readBytes = 262_144

/** A bundle as a folder: an OCI image layout. @throws Failure for any other folder */
export async function openFolder(folder: string): Promise<BundleSource> {
  const blobs = join(folder, 'blobs', 'sha256')
  const index = await readFile(join(folder, 'index.json')).catch(() => undefined)
  const names = await readdir(blobs).catch(() => undefined)
  if (!index || !names)
    throw new Failure(
      'usage',
      `${folder} is not an OCI image layout: it has no ${index ? 'blobs/sha256' : 'index.json'}; edgehostctl content build makes bundles`,
    )
  const present = new Set(names.map((hex) => `sha256:${hex}`))
  return {
    index,
    name: basename(resolve(folder)),
    isInOrder: false,
    mayHave: (digest) => present.has(digest),
    async *blobs(wanted) {
      for (const digest of wanted) {
        if (!present.has(digest)) continue
        const file = join(blobs, digest.slice('sha256:'.length))
        const { size: sizeBytes } = statSync(file)
        yield {
          digest,
          sizeBytes,
          open: (start) => createReadStream(file, { start, highWaterMark: readBytes }),
        }
      }
    },
    close: async () => undefined,
  }
}
