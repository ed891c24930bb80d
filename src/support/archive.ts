import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress } from 'node:zlib'
import { placeFile } from '../system/place-file.ts'
import { writeOutput } from '../program/standard-output.ts'
import { tarEnd, tarHeader, tarPadding } from '../archive/ustar.ts'

/** A file of an archive. */
export interface Member {
  /** At most 100 bytes of ASCII. */
  readonly name: string
  readonly content: Buffer
}

/** The bytes of a tar archive, compressed by Zstandard (RFC 8878). The next member is asked for when there is room. */
function packed(members: AsyncIterable<Member>, madeAt: number) {
  async function* bytes() {
    for await (const { name, content } of members) {
      yield tarHeader(name, content.length, madeAt)
      yield content
      yield tarPadding(content.length)
    }
    yield tarEnd()
  }
  return [Readable.from(bytes(), { objectMode: false }), createZstdCompress()] as const
}

/**
 * Writes an archive beside its place and moves it there when it is whole and on the disk. For its owner only to read.
 * @param file `-` is standard output
 * @param madeAt of each member, milliseconds since 1970
 * @param onBegin told under which name the file is going to grow
 */
export async function writeArchive(
  file: string,
  members: AsyncIterable<Member>,
  madeAt: number,
  onBegin: (temporary: string) => void,
): Promise<void> {
  if (file === '-') {
    await pipeline(...packed(members, madeAt), async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) writeOutput(chunk)
    })
    return
  }
  await placeFile({
    ...{ path: file, mode: 0o600, onBegin },
    write: (handle) => pipeline(...packed(members, madeAt), handle.createWriteStream({ flush: true })),
  })
}
