import { createHash } from 'node:crypto'
import { cp, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Entry } from '../../src/content/format/entry.ts'
import { createRecordParser, formatRecord } from '../../src/content/format/record.ts'
import type { ContentProgram } from '../../src/content/program/content-program.ts'
import { verify } from '../../src/content/program/publish.ts'
import type { PublishOrder, StagedUpload } from '../../src/content/store/content-store.ts'

/** A bundle for a test of the store, which reads no manifest. */
export interface TestBundle {
  readonly name: string
  readonly blobs: readonly Buffer[]
  /** Blobs that the index names and that the upload may lack. */
  readonly optional?: readonly Buffer[]
  readonly entries?: readonly Partial<Entry>[]
  readonly definition?: Buffer
  /** Milliseconds since 1970. */
  readonly publishedAt?: number
}

export const hexOfBytes = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
export const digestOfBytes = (bytes: Uint8Array) => `sha256:${hexOfBytes(bytes)}`

/** Writes what an upload has when it is received. @param held digests (hex) that the upload has already */
export async function writeUpload(
  { uid, folder }: StagedUpload,
  { name, blobs, optional = [], entries = [], definition, publishedAt = 1_000 }: TestBundle,
  held: ReadonlySet<string> = new Set(),
): Promise<PublishOrder> {
  const all = definition ? [...blobs, definition] : blobs
  const named = [...all, ...optional].map(hexOfBytes).sort()
  const index = Buffer.from(JSON.stringify({ name, blobs: named }))
  await writeFile(join(folder, 'index.json'), index)
  for (const blob of all) {
    if (!held.has(hexOfBytes(blob))) await writeFile(join(folder, 'blobs', hexOfBytes(blob)), blob)
  }
  const bundled = definition && { digest: digestOfBytes(definition), sizeBytes: definition.length }
  const indexDigest = digestOfBytes(index)
  return {
    indexDigest,
    bundle: { uid, name, publishedAt, via: 'blobs', fileName: '', fileSizeBytes: 0, fileSha256: '' },
    async examine(bundle) {
      const here = new Set(await readdir(join(folder, 'blobs')))
      const carried = [...all, ...optional.filter((blob) => here.has(hexOfBytes(blob)))]
      const sizes = new Map([index, ...carried].map((bytes) => [digestOfBytes(bytes), bytes.length]))
      const found = {
        ...{ indexDigest, blobCount: sizes.size, ...(bundled ? { definition: bundled } : {}) },
        sizeBytes: [...sizes.values()].reduce((sum, size) => sum + size, 0),
      }
      const described = entries.map((entry, at) => ({
        ...{ mediaType: 'application/vnd.oci.image.manifest.v1+json', kind: 'image' as const },
        ...{ digest: digestOfBytes(all[at] ?? index), sizeBytes: 1, platforms: [], ...entry },
      }))
      const record = [...formatRecord({ ...bundle, ...found }, described, sizes)]
      await writeFile(join(folder, 'record.jsonl'), record.join(''))
      return found
    },
  }
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

/** Reads blobs as `content.cjs` does, in this process. */
export const verifyInProcess: ContentProgram['verify'] = (order) => verify({ verb: 'verify', ...order })

/** Puts a published bundle on the disk, for a daemon that has not opened its content yet. */
export async function putBundle(stateDirectory: string, uid: string, bundle: TestBundle): Promise<void> {
  const content = join(stateDirectory, 'content')
  const blobs = join(content, 'blobs', 'sha256')
  const folder = join(stateDirectory, `upload-${uid}`)
  for (const each of [blobs, join(content, 'bundles'), join(folder, 'blobs')])
    await mkdir(each, { recursive: true })
  const { indexDigest, examine, bundle: facts } = await writeUpload({ uid, folder }, bundle)
  await examine(facts)
  await cp(join(folder, 'blobs'), blobs, { recursive: true })
  await rename(join(folder, 'index.json'), join(blobs, indexDigest.slice(7)))
  await rename(join(folder, 'record.jsonl'), join(content, 'bundles', `${uid}.jsonl`))
}

/** A bundle with an image of one platform, for documents and tests of the API. */
export const busyboxBundle: TestBundle = {
  name: 'factory',
  blobs: [Buffer.from('an index'), Buffer.from('a layer')],
  entries: [
    {
      mediaType: 'application/vnd.oci.image.index.v1+json',
      name: 'docker.io/library/busybox',
      tag: '1.36',
      sizeBytes: 15,
      platforms: [
        { os: 'linux', architecture: 'amd64', digest: digestOfBytes(Buffer.from('m')), isCarried: true },
        { os: 'linux', architecture: 'arm64', digest: digestOfBytes(Buffer.from('n')), isCarried: false },
      ],
    },
  ],
  publishedAt: Date.UTC(2026, 0, 31, 9, 45),
}
