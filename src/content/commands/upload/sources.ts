import { Readable } from 'node:stream'
import { createReadStream, statSync } from 'node:fs'
import { type FileHandle, readdir, readFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { Failure } from '../../../ctl/exit-codes.ts'
import { decompress } from '../../../archive/compression.ts'
import { withDefaults } from '../../../archive/limits.ts'

/** A blob of a bundle that can be read. */
export interface SourceBlob {
  /** `sha256:…` by its name; the host compares. */
  readonly digest: string
  readonly sizeBytes: number
  /** Reads it from an offset. */
  open(offset: number): Readable
}

/** A bundle on this machine. */
export interface BundleSource {
  /** Bytes of index.json. */
  readonly index: Buffer
  /** Name of the bundle if the command line has none. */
  readonly name: string
  /** Whether it may have a blob; a compressed file is known only as far as it was read. */
  mayHave(digest: string): boolean
  /**
   * The blobs of `wanted` that it has. Of a source that is read `inOrder`, a blob can only be opened once, and has to be read, or left,
   * before the next one is asked for.
   */
  blobs(wanted: ReadonlySet<string>): AsyncIterable<SourceBlob>
  readonly isInOrder: boolean
  close(): Promise<void>
}

/** Bytes of a tar archive, read in order. */
interface TarInput {
  /** Exactly so many bytes; fewer only at the end of the archive. */
  read(bytes: number): Promise<Buffer>
  skip(bytes: number): Promise<void>
  /** Bytes read and skipped so far. */
  position(): number
}

/** A file in a tar archive. Its content follows in the input; the unread rest is skipped before the next member. */
interface TarMember {
  /** Without a leading `./`. */
  readonly name: string
  readonly sizeBytes: number
}

/** The archive is not one, or ends early. */
export class NotTar extends Error {}

const blockBytes = 512
const recordsLimit = 1_048_576

/**
 * The files of a tar archive: ustar and pax of POSIX.1-2024, pax(1), and long names and large sizes of GNU tar. It only finds
 * the blobs of a bundle; the host checks the sent blobs.
 */
async function* tarMembers(input: TarInput): AsyncGenerator<TarMember, void, undefined> {
  let longName: string | undefined
  let paxSize: number | undefined
  for (;;) {
    const header = await input.read(blockBytes)
    if (header.length === 0 || header.every((byte) => byte === 0)) return
    if (header.length < blockBytes || !isSummed(header))
      throw new NotTar('it is not a tar archive, or damaged')
    const kind = String.fromCharCode(header[156] ?? 0)
    const ownSize = numberIn(header.subarray(124, 136))
    const sizeBytes = paxSize ?? ownSize
    const end = input.position() + Math.ceil(sizeBytes / blockBytes) * blockBytes
    if ('xgLK'.includes(kind)) {
      if (ownSize > recordsLimit) throw new NotTar('a header of it is too large')
      const records = (await input.read(ownSize)).toString()
      if (kind === 'L') longName = textIn(records)
      if (kind === 'x') {
        const pax = paxRecords(records)
        longName = pax.get('path') ?? longName
        const given = pax.get('size')
        if (given !== undefined) paxSize = Number(given)
      }
      await input.skip(Math.ceil(ownSize / blockBytes) * blockBytes - ownSize)
      continue
    }
    const folder =
      header.toString('latin1', 257, 262) === 'ustar' ? textIn(header.toString('utf8', 345, 500)) : ''
    const short = textIn(header.toString('utf8', 0, 100))
    const name = (longName ?? (folder === '' ? short : `${folder}/${short}`)).replace(/^(?:\.\/)+/, '')
    longName = undefined
    paxSize = undefined
    if (kind === '0' || kind === '\0' || kind === '7') yield { name, sizeBytes }
    const left = end - input.position()
    if (left > 0) await input.skip(left)
  }
}

const textIn = (text: string) => text.split('\0', 1)[0] ?? ''

/** Octal digits, or base 256 with the first bit set. */
function numberIn(field: Buffer): number {
  if (((field[0] ?? 0) & 0x80) === 0)
    return Number.parseInt(textIn(field.toString('latin1')).trim() || '0', 8)
  let value = (field[0] ?? 0) & 0x7f
  for (const byte of field.subarray(1)) value = value * 256 + byte
  return value
}

/** The sum of all bytes; the checksum field itself counts as spaces. */
function isSummed(header: Buffer): boolean {
  let sum = 8 * 0x20
  for (const [at, byte] of header.entries()) if (at < 148 || at >= 156) sum += byte
  return sum === numberIn(header.subarray(148, 156))
}

/** `LENGTH KEY=VALUE\n`; the lengths are bytes, and keys that count here have values in ASCII or UTF-8 without line breaks. */
function paxRecords(text: string): Map<string, string> {
  const records = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [, key, value] = /^\d+ ([^=]+)=(.*)$/.exec(line) ?? []
    if (key !== undefined && value !== undefined) records.set(key, value)
  }
  return records
}

const readBytes = 262_144
const blobName = /^blobs\/sha256\/([0-9a-f]{64})$/

/** The digest of a member that is a blob. */
function digestOfMember(name: string): string | undefined {
  const [, hex] = blobName.exec(name) ?? []
  return hex === undefined ? undefined : `sha256:${hex}`
}

/**
 * A bundle as a tar file that is not compressed: its members are listed once, and read where they lie.
 * @returns undefined if it has no index.json
 * @throws NotTar
 */
export async function openTar(
  file: string,
  handle: FileHandle,
  name: string,
): Promise<BundleSource | undefined> {
  const members = new Map<string, { readonly at: number; readonly sizeBytes: number }>()
  const input = inputOf(handle)
  let index: Buffer | undefined
  for await (const { name: member, sizeBytes } of tarMembers(input)) {
    const digest = digestOfMember(member)
    if (digest !== undefined) members.set(digest, { at: input.position(), sizeBytes })
    if (member === 'index.json') index = await input.read(sizeBytes)
  }
  if (!index) return undefined
  return {
    index,
    name,
    isInOrder: false,
    mayHave: (digest) => members.has(digest),
    async *blobs(wanted) {
      // In the order of the file, which a disk reads faster.
      for (const [digest, { at, sizeBytes }] of members)
        if (wanted.has(digest))
          yield {
            digest,
            sizeBytes,
            // `end` is included.
            open: (offset) =>
              createReadStream(file, {
                start: at + offset,
                end: at + sizeBytes - 1,
                highWaterMark: readBytes,
              }),
          }
    },
    close: () => handle.close(),
  }
}

/** Reads only headers from the disk. */
function inputOf(handle: FileHandle): TarInput {
  let at = 0
  return {
    position: () => at,
    async read(bytes) {
      const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(bytes), 0, bytes, at)
      at += bytesRead
      return buffer.subarray(0, bytesRead)
    },
    async skip(bytes) {
      at += bytes
    },
  }
}

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

// A file of this machine is trusted to be what it is; only the memory of the decompressor is bounded.
const limits = withDefaults({
  unpackedBytes: Number.MAX_SAFE_INTEGER,
  ratio: Number.MAX_SAFE_INTEGER,
  frames: Number.MAX_SAFE_INTEGER,
  zstdWindowLog: 27,
})
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

/** The digests in index.json; the host checks its form. */
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
