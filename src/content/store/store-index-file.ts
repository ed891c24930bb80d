import { createWriteStream } from 'node:fs'
import { rename, unlink } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { formatImageName } from '../format/image-name.ts'
import { missing, type ContentFolder } from './folder.ts'
import type { IndexDatabase } from './index-database.ts'
import { createSlices } from '../../base/slices.ts'
import { hasTag } from './tags.ts'

interface Listed {
  readonly id: number
  readonly digest: string
  readonly mediaType: string
  readonly name: string
  readonly tag: string
  readonly sizeBytes: number
  readonly isTagged: number
}

/**
 * How each index.json of a store begins, as earlier versions have written it too: the line feed tells it from those of other programs.
 */
export const indexFileHead =
  '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[\n'

/**
 * Writes index.json of the store, for people and for tools that read an image layout, such as `skopeo copy oci:…`. The daemon does
 * not read it. A tag is at the bundle that has it.
 */
export async function writeIndexFile({ indexFile }: ContentFolder, { sql }: IndexDatabase): Promise<void> {
  const page = sql.prepare(`SELECT entry.id AS id, digest, media_type AS mediaType, name, tag,
    blob.size_bytes AS sizeBytes, ${hasTag} AS isTagged
    FROM entry JOIN bundle ON bundle.id = entry.bundle AND is_published = 1 JOIN blob ON hex = substr(digest, 8)
    WHERE entry.id > ? ORDER BY entry.id LIMIT 200`)
  async function* pieces(): AsyncGenerator<string> {
    yield indexFileHead
    const rest = createSlices()
    let isEmpty = true
    for (let last = 0; ;) {
      await rest()
      const rows = page.all(last) as unknown as Listed[]
      if (rows.length === 0) break
      yield rows
        .map((row) => `${isEmpty && row === rows[0] ? '' : ',\n'}${JSON.stringify(descriptorOf(row))}`)
        .join('')
      isEmpty = false
      last = rows.at(-1)?.id ?? last
    }
    yield isEmpty ? ']}\n' : '\n]}\n'
  }
  const temporary = `${indexFile}.new`
  try {
    await pipeline(pieces, createWriteStream(temporary, { mode: 0o600, flush: true }))
    await rename(temporary, indexFile)
  } catch (error) {
    await unlink(temporary).catch(missing)
    throw error
  }
}

function descriptorOf({ digest, mediaType, sizeBytes, name, tag, isTagged }: Listed) {
  const named = isTagged === 1 ? formatImageName({ name, tag }) : undefined
  return {
    mediaType,
    digest,
    size: sizeBytes,
    ...(named && {
      annotations: { 'io.containerd.image.name': named, 'org.opencontainers.image.ref.name': named },
    }),
  }
}
