import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { decompress } from '../../../archive/compression.ts'
import { withDefaults } from '../../../archive/limits.ts'
import type { BundleSource, SourceBlob } from './source.ts'
import { digestOfMember } from './tar-source.ts'
import { NotTar, tarMembers, type TarInput } from './tar-members.ts'

// A file of this machine is trusted to be what it is; only the memory of the decompressor is bounded.
const limits = withDefaults({
  unpackedBytes: Number.MAX_SAFE_INTEGER,
  ratio: Number.MAX_SAFE_INTEGER,
  frames: Number.MAX_SAFE_INTEGER,
  zstdWindowLog: 27,
})
const readBytes = 262_144
// Manifests are kept from the first pass; a configuration or a small layer may be among them.
const keptBlobBytes = 8_388_608
const keptBytes = 134_217_728

/**
 * A bundle as a compressed tar file. It cannot be read from the middle: the first pass finds index.json and the manifests, and
 * ends at the first large blob after them; each call of `blobs` is one more pass over the file.
 * @returns undefined if it has no index.json
 * @throws NotTar, AppError of the decompression
 */
export async function openCompressed(file: string, name: string): Promise<BundleSource | undefined> {
  const kept = new Map<string, Buffer>()
  let keptTotal = 0
  let index: Buffer | undefined
  let isRead = true
  const seen = new Set<string>()
  const first = openPass(file)
  try {
    for await (const { name: member, sizeBytes } of tarMembers(first.input)) {
      const digest = digestOfMember(member)
      if (member === 'index.json') index = await first.input.read(sizeBytes)
      if (digest === undefined) continue
      seen.add(digest)
      if (sizeBytes <= keptBlobBytes && keptTotal + sizeBytes <= keptBytes) {
        const content = await first.input.read(sizeBytes)
        // Only what may be a manifest.
        if (content[0] !== 0x7b) continue
        kept.set(digest, content)
        keptTotal += sizeBytes
      } else if (index && digestsOf(index).every((each) => kept.has(each))) {
        isRead = false
        break
      }
    }
  } finally {
    await first.close()
  }
  if (!index) return undefined

  async function* pass(wanted: ReadonlySet<string>): AsyncGenerator<SourceBlob> {
    const left = new Set(wanted)
    const { input, close, contentOf } = openPass(file)
    try {
      for await (const { name: member, sizeBytes } of tarMembers(input)) {
        const digest = digestOfMember(member)
        if (digest === undefined || !left.delete(digest)) continue
        yield { digest, sizeBytes, open: (offset) => contentOf(sizeBytes, offset) }
        if (left.size === 0) return
      }
    } finally {
      await close()
    }
  }

  return {
    index,
    name,
    isInOrder: true,
    mayHave: (digest) => !isRead || seen.has(digest),
    async *blobs(wanted) {
      const left = new Set(wanted)
      for (const digest of wanted) {
        const content = kept.get(digest)
        if (!content) continue
        left.delete(digest)
        yield {
          digest,
          sizeBytes: content.length,
          open: (offset) => Readable.from([content.subarray(offset)]),
        }
      }
      if (left.size > 0) yield* pass(left)
    },
    close: async () => undefined,
  }
}

/** What index.json names; the host checks its form. */
function digestsOf(index: Buffer): string[] {
  try {
    const { manifests } = JSON.parse(index.toString()) as { manifests?: { digest?: string }[] }
    return (manifests ?? []).flatMap(({ digest }) => digest ?? [])
  } catch {
    return []
  }
}

/** One pass over the unpacked bytes. */
function openPass(file: string) {
  const chunks = decompress(createReadStream(file, { highWaterMark: readBytes }), limits)
  let chunk: Buffer = Buffer.alloc(0)
  let position = 0

  /** The next bytes, at most so many; empty at the end. */
  async function next(most: number): Promise<Buffer> {
    while (chunk.length === 0) {
      const result = await chunks.next()
      if (result.done) return chunk
      chunk = result.value
    }
    const taken = chunk.subarray(0, most)
    chunk = chunk.subarray(taken.length)
    position += taken.length
    return taken
  }

  const input: TarInput = {
    position: () => position,
    async read(bytes) {
      const parts: Buffer[] = []
      for (let left = bytes; left > 0;) {
        const part = await next(left)
        if (part.length === 0) break
        parts.push(part)
        left -= part.length
      }
      return Buffer.concat(parts)
    },
    async skip(bytes) {
      for (let left = bytes; left > 0;) {
        const { length } = await next(left)
        if (length === 0) break
        left -= length
      }
    },
  }

  async function* content(sizeBytes: number, offset: number): AsyncGenerator<Buffer> {
    await input.skip(offset)
    for (let left = sizeBytes - offset; left > 0;) {
      const part = await next(left)
      if (part.length === 0) throw new NotTar('it ends early')
      left -= part.length
      yield part
    }
  }

  return {
    input,
    contentOf: (sizeBytes: number, offset: number) => Readable.from(content(sizeBytes, offset)),
    async close() {
      await chunks.return()
    },
  }
}
