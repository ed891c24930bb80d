import { Readable } from 'node:stream'
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

/** The bytes of a tar archive, compressed with Zstandard (RFC 8878). A member is read only when the previous one was written. */
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
 * Writes an archive under a temporary name and renames it when it is complete and on the disk. Only its owner may read it.
 * @param file path of the archive; `-` is standard output
 * @param madeAt time of each member, milliseconds since 1970
 * @param onBegin called with the temporary name of the file
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
  }).catch(withFile(file))
}
