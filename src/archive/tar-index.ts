import type { ArchiveLimits } from './limits.ts'
import { createMemberNames } from './member-names.ts'
import { refuse } from './refusal.ts'
import { nextMember, paddingOf, type TarInput } from './tar-reader.ts'

/** A member, and the place of its content in the archive. */
export interface IndexedMember {
  readonly kind: 'file' | 'folder' | 'link' | 'hardLink'
  readonly sizeBytes: number
  /** Bytes before its content. */
  readonly start: number
  /** Target of a link, unchecked. */
  readonly target: string
}

/** A file with random access, as a `FileHandle`. */
export interface IndexedFile {
  stat(): Promise<{ readonly size: number }>
  read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ readonly buffer: Buffer; readonly bytesRead: number }>
}

/**
 * Lists the members of an archive that is not compressed. Only the headers are read.
 * @returns by path
 * @throws AppError where the archive is damaged or breaks a rule
 */
export async function indexTar(
  file: IndexedFile,
  limits: ArchiveLimits,
): Promise<Map<string, IndexedMember>> {
  const { size: total } = await file.stat()
  const names = createMemberNames(limits)
  const members = new Map<string, IndexedMember>()
  let at = 0
  const input: TarInput = {
    async take(bytes) {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, at)
      if (bytesRead < bytes) throw refuse('Truncated', undefined, 'ends too early; copy it again')
      at += bytes
      return buffer
    },
    async skip(bytes) {
      at += bytes
    },
  }
  for (;;) {
    const header = await nextMember(input, limits)
    if (header === undefined) return members
    const { name, kind, size, target } = header
    const path = names.admit(name, kind === 'folder' ? 'folder' : 'file')
    if (at + size > total) throw refuse('Truncated', name, 'is cut off; copy the archive again')
    if (path !== '') members.set(path, { kind, sizeBytes: size, start: at, target })
    at += size + paddingOf(size)
  }
}
