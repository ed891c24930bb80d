import { createHash } from 'node:crypto'
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Entry } from '../../src/content/format/entry.ts'
import { createRecordParser, formatRecord } from '../../src/content/format/record.ts'
import type { ContentProgram } from '../../src/content/program/content-program.ts'
import type { PublishOrder, StagedUpload } from '../../src/content/store/content-store.ts'

/** A bundle for a test of the store, which reads no manifest. */
export interface TestBundle {
  readonly name: string
  readonly blobs: readonly Buffer[]
  readonly entries?: readonly Partial<Entry>[]
  readonly definition?: Buffer
  /** Milliseconds since 1970. */
  readonly publishedAt?: number
}

export const hexOfBytes = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
export const digestOfBytes = (bytes: Uint8Array) => `sha256:${hexOfBytes(bytes)}`

/** Writes what an upload has when it is examined. @param held digests (hex) that the upload has already */
export async function writeUpload(
  { uid, folder }: StagedUpload,
  { name, blobs, entries = [], definition, publishedAt = 1_000 }: TestBundle,
  held: ReadonlySet<string> = new Set(),
): Promise<PublishOrder> {
  const all = definition ? [...blobs, definition] : blobs
  const index = Buffer.from(JSON.stringify({ name, blobs: all.map(hexOfBytes) }))
  await writeFile(join(folder, 'index.json'), index)
  for (const blob of all) {
    if (!held.has(hexOfBytes(blob))) await writeFile(join(folder, 'blobs', hexOfBytes(blob)), blob)
  }
  const sizes = new Map([index, ...all].map((bytes) => [digestOfBytes(bytes), bytes.length]))
  const bundled = definition && { digest: digestOfBytes(definition), sizeBytes: definition.length }
  const facts = {
    ...{
      uid,
      name,
      indexDigest: digestOfBytes(index),
      publishedAt,
      via: 'blobs' as const,
      fileName: '',
      fileSizeBytes: 0,
      fileSha256: '',
    },
    sizeBytes: [...sizes.values()].reduce((sum, size) => sum + size, 0),
    blobCount: sizes.size,
    ...(bundled ? { definition: bundled } : {}),
  }
  const record = formatRecord(
    facts,
    entries.map((entry, at) => ({
      ...{ mediaType: 'application/vnd.oci.image.manifest.v1+json', kind: 'image' as const },
      ...{ digest: digestOfBytes(all[at] ?? index), sizeBytes: 1, platforms: [], ...entry },
    })),
    sizes,
  )
  await writeFile(join(folder, 'record.jsonl'), [...record].join(''))
  return { name, indexDigest: facts.indexDigest, publishedAt, definition: bundled }
}

/** Moves blobs as `content.cjs` does, in this process. */
export const publishInProcess: Pick<ContentProgram, 'publish'> = {
  async publish({ upload, blobs }) {
    const wanted: string[] = []
    const parser = createRecordParser({ onBlob: ([digest]) => wanted.push(digest.slice(7)) })
    parser.add(await readFile(join(upload, 'record.jsonl')))
    const present = new Set(await readdir(blobs))
    const missing = wanted.filter((hex) => !present.has(hex))
    for (const hex of missing) await rename(join(upload, 'blobs', hex), join(blobs, hex))
    return { movedCount: missing.length }
  },
}
