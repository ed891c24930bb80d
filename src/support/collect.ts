import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress } from 'node:zlib'
import { withFile } from '../errors/system-reason.ts'
import { placeFile } from '../system/place-file.ts'
import { writeOutput } from '../program/standard-output.ts'
import { tarEnd, tarHeader, tarPadding } from '../archive/ustar.ts'

/** A file of an archive. */
export interface Member {
  /** At most 100 bytes of ASCII. */
  readonly name: string
  readonly content: Buffer
}

interface Packing {
  /** Time of each member, milliseconds since 1970. */
  readonly madeAt: number
  /** Most bytes of the tar; by default any number. */
  readonly limitBytes?: number
}

/** The bytes of a tar archive. A member is read only when the previous one was written. @throws Error for a larger one */
async function* tarOf(
  members: AsyncIterable<Member>,
  { madeAt, limitBytes = Infinity }: Packing,
): AsyncGenerator<Buffer> {
  let size = 0
  for await (const { name, content } of members) {
    size += content.length
    if (size > limitBytes)
      throw Object.assign(new Error(`the archive would be larger than ${limitBytes} bytes`), {
        code: 'EFBIG',
      })
    yield tarHeader(name, content.length, madeAt)
    yield content
    yield tarPadding(content.length)
  }
  yield tarEnd()
}

/** The same, compressed with Zstandard (RFC 8878) unless its name ends with `.tar`. */
const packed = (file: string, members: AsyncIterable<Member>, packing: Packing) =>
  [
    Readable.from(tarOf(members, packing), { objectMode: false }),
    file.endsWith('.tar') ? new PassThrough() : createZstdCompress(),
  ] as const

/**
 * Writes an archive under a temporary name and renames it when it is complete and on the disk. Only its owner may read it.
 * @param file path of the archive; `-` is standard output
 * @param onBegin called with the temporary name of the file
 */
export async function writeArchive(
  file: string,
  members: AsyncIterable<Member>,
  packing: Packing,
  onBegin: (temporary: string) => void,
): Promise<void> {
  if (file === '-') {
    await pipeline(...packed(file, members, packing), async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) writeOutput(chunk)
    })
    return
  }
  await placeFile({
    path: file,
    mode: 0o600,
    onBegin,
    write: (handle) => pipeline(...packed(file, members, packing), handle.createWriteStream({ flush: true })),
  }).catch(withFile(file))
}

/** A source of a file in the archive. */
export interface Source {
  /** Name of the file in the archive. */
  readonly name: string
  /** Source of the content, as shown to the operator: a command, a path of the API. */
  readonly from: string
  readonly read: () => Promise<string>
}

/** A source that was read, or could not be. */
export interface Collected {
  readonly name: string
  readonly from: string
  /** Size of the file; 0 where there is none. */
  readonly bytes: number
  readonly durationMs: number
  /** Why the source could not be read. */
  readonly problem?: string
}

interface CollectOptions {
  readonly sources: readonly Source[]
  /** Replaces the secrets in a text. */
  readonly mask: (text: string) => string
  /** Folder in the archive. */
  readonly folder: string
  /** Called before each source is read. */
  readonly onBegin: (source: Source) => void
  readonly onEnd: (collected: Collected) => void
}

/** Reads one source after the other. A source that cannot be read has no file in the archive; the others are still read. */
export async function* collect(options: CollectOptions): AsyncGenerator<Member> {
  const { sources, mask, folder, onBegin, onEnd } = options
  for (const source of sources) {
    const { name, from } = source
    onBegin(source)
    const startedAt = performance.now()
    const durationMs = () => Math.round(performance.now() - startedAt)
    let text: string
    try {
      text = mask(await source.read())
    } catch (error) {
      onEnd({ name, from, bytes: 0, durationMs: durationMs(), problem: mask((error as Error).message) })
      continue
    }
    const content = Buffer.from(text)
    yield { name: `${folder}/${name}`, content }
    onEnd({ name, from, bytes: content.length, durationMs: durationMs() })
  }
}
