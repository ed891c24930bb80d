import type { ArchiveLimits } from './limits.ts'
import { refuse } from './refusal.ts'
import { createTarHeaders, paddedBytes, tarBlockBytes, type TarMember } from './tar-headers.ts'

/**
 * Reads an archive as it arrives, with constant memory.
 * @param take gets each member and a source of its content; content that is not read is skipped
 * @throws AppError where the archive is damaged or breaks a rule for names; what the source and `take` throw
 */
export async function readTar(
  source: AsyncIterable<Buffer>,
  limits: ArchiveLimits,
  take: (member: TarMember, content: AsyncIterable<Buffer>) => Promise<void>,
): Promise<void> {
  const headers = createTarHeaders(limits)
  const chunks = source[Symbol.asyncIterator]()
  let chunk: Buffer = Buffer.alloc(0)

  /** The next bytes, at most so many and at least one. */
  const pull = async (most: number): Promise<Buffer> => {
    while (chunk.length === 0) {
      const next = await chunks.next()
      if (next.done === true) throw refuse('Truncated', undefined, 'ends too early; copy it again')
      chunk = next.value
    }
    const taken = chunk.subarray(0, most)
    chunk = chunk.subarray(taken.length)
    return taken
  }
  const exactly = async (bytes: number): Promise<Buffer> => {
    const parts: Buffer[] = []
    for (let rest = bytes; rest > 0;) {
      const part = await pull(rest)
      parts.push(part)
      rest -= part.length
    }
    return Buffer.concat(parts)
  }
  const skip = async (bytes: number): Promise<void> => {
    for (let rest = bytes; rest > 0;) rest -= (await pull(rest)).length
  }

  try {
    for (;;) {
      const header = headers.addHeader(await exactly(tarBlockBytes))
      if (header === 'end') break
      if ('recordBytes' in header) {
        headers.addRecords(await exactly(header.recordBytes))
        await skip(paddedBytes(header.recordBytes) - header.recordBytes)
        continue
      }
      let rest = header.member.sizeBytes
      await take(header.member, {
        async *[Symbol.asyncIterator]() {
          while (rest > 0) {
            const part = await pull(rest)
            rest -= part.length
            yield part
          }
        },
      })
      await skip(rest + paddedBytes(header.member.sizeBytes) - header.member.sizeBytes)
    }
    // The rest is read to its end, so that a damaged compressed stream is noticed.
    while ((await chunks.next()).done !== true);
  } finally {
    await chunks.return?.()
  }
}
