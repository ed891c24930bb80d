import { Readable } from 'node:stream'
import { createZstdCompress } from 'node:zlib'
import { rawMember } from './tar-bytes.ts'
import { noise } from './random.ts'

const MiB = 2 ** 20

/**
 * An archive of manifests that unpack to some two hundred times its size, which is within the ratio that is allowed.
 * @param count of its manifests, 4 MiB each
 */
export async function unpackingArchive(count: number): Promise<Buffer> {
  function* members(): Generator<Buffer> {
    for (let index = 0; index < count; index += 1) {
      const content = Buffer.alloc(4 * MiB, '# a line of a manifest\n')
      for (let at = 0; at < content.length; at += MiB)
        content.write(noise(5_000).toString('hex'), at, 'latin1')
      yield rawMember({ name: `packs/web-shop-1.0/manifests/${index}.yaml`, content })
    }
  }
  return compress(members())
}

/** An archive of so many files of a few bytes. */
export function manyFiles(count: number): Promise<Buffer> {
  function* members(): Generator<Buffer> {
    for (let index = 0; index < count; index += 1)
      yield rawMember({
        name: `packs/web-shop-1.0/manifests/${index}.yaml`,
        content: Buffer.from(`# ${index}\n`),
      })
  }
  return compress(members())
}

async function compress(chunks: Iterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of Readable.from(chunks).pipe(createZstdCompress())) parts.push(part as Buffer)
  return Buffer.concat(parts)
}
