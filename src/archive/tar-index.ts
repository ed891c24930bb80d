import type { FileHandle } from 'node:fs/promises'
import type { ArchiveLimits } from './limits.ts'
import { refuse } from './refusal.ts'
import { createTarHeaders, paddedBytes, tarBlockBytes, type TarMember } from './tar-headers.ts'

/** A member, and where its content is in the archive. */
export interface IndexedMember extends TarMember {
  /** Bytes before its content. */
  readonly start: number
}

/**
 * Lists the members of an archive that is not compressed. Only the headers are read.
 * @returns by path
 * @throws AppError where the archive is damaged or breaks a rule for names
 */
export async function indexTar(file: FileHandle, limits: ArchiveLimits): Promise<Map<string, IndexedMember>> {
  const { size: total } = await file.stat()
  const headers = createTarHeaders(limits)
  const members = new Map<string, IndexedMember>()
  const read = async (at: number, bytes: number): Promise<Buffer> => {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, at)
    if (bytesRead < bytes) throw refuse('Truncated', undefined, 'ends too early; copy it again')
    return buffer
  }
  for (let at = 0; at < total;) {
    const header = headers.addHeader(await read(at, tarBlockBytes))
    if (header === 'end') return members
    const start = at + tarBlockBytes
    if ('recordBytes' in header) {
      headers.addRecords(await read(start, header.recordBytes))
      at = start + paddedBytes(header.recordBytes)
      continue
    }
    const { member } = header
    if (start + member.sizeBytes > total)
      throw refuse('Truncated', member.path, 'is cut off; copy the archive again')
    if (member.path !== '') members.set(member.path, { ...member, start })
    at = start + paddedBytes(member.sizeBytes)
  }
  throw refuse('Truncated', undefined, 'has no end; copy it again')
}
