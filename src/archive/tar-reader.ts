import type { ArchiveLimits } from './limits.ts'
import { requireUtf8 } from './member-names.ts'
import { refuse } from './refusal.ts'
import { largeBytes, parseHeader, untilNul, type TarHeader } from './tar-header.ts'
import { parseRecords, type PaxRecords } from './tar-records.ts'

/** A member of an archive while it is read. */
export interface TarMember {
  /** As the archive spells it; the rules for names are those of member-names.ts. */
  readonly name: string
  readonly kind: 'file' | 'folder'
  readonly sizeBytes: number
  /** The bytes; what is not read is skipped when the next member is asked for. No piece is ever used again. */
  readonly content: AsyncGenerator<Buffer, void, undefined>
}

const blockBytes = 512
const zeros = Buffer.alloc(blockBytes)

/**
 * Reads a tar archive, member by member, with the memory of one piece. The end has to be there, two blocks of zeros, and
 * only zeros may follow.
 * @throws AppError ArchiveInvalid, ArchiveDamaged or ArchiveTooLarge; errors of the source unchanged
 */
export async function* readTar(
  source: AsyncIterable<Buffer>,
  limits: ArchiveLimits,
): AsyncGenerator<TarMember, void, undefined> {
  const input = createInput(source)
  try {
    for (;;) {
      const header = await nextMember(input, limits)
      if (header === undefined) break
      const rest = { bytes: header.size }
      yield {
        name: header.name,
        // Links are not among what is read as a stream.
        kind: header.kind === 'folder' ? 'folder' : 'file',
        sizeBytes: header.size,
        content: readContent(input, rest),
      }
      await input.skip(rest.bytes + paddingOf(header.size))
    }
    await requireEnd(input)
  } finally {
    await input.end()
  }
}

/** Where headers are read from. */
export interface TarInput {
  /** Exactly that many bytes. @throws AppError Truncated */
  take(bytes: number): Promise<Buffer>
  skip(bytes: number): Promise<void>
}

type Input = ReturnType<typeof createInput>
type MemberKind = 'file' | 'folder' | 'link' | 'hardLink'
/** A member, as its header and the records before it describe it. */
export type MemberHeader = TarHeader & { readonly kind: MemberKind }

/**
 * Reads up to the content of the next member.
 * @returns undefined at the first block of zeros
 * @throws AppError as readTar
 */
export async function nextMember(input: TarInput, limits: ArchiveLimits): Promise<MemberHeader | undefined> {
  let records: PaxRecords | undefined
  let before: TarHeader['kind'] | undefined
  for (;;) {
    const block = await input.take(blockBytes)
    if (block.equals(zeros)) {
      if (records) throw refuse('RecordInvalid', records.path, 'has records in its tar header, and no member')
      return undefined
    }
    const header = parseHeader(block, limits)
    const { kind, name, size } = header
    if (kind === 'file' || kind === 'folder' || kind === 'link' || kind === 'hardLink')
      return withRecords({ ...header, kind }, records ?? {}, limits)
    // Readers differ in which of two names counts. A long target and a long name are of one link.
    const isPair = before !== undefined && before !== kind && isLong(before) && isLong(kind)
    if (records && !isPair)
      throw refuse('RecordInvalid', name, 'has two headers with records before one member')
    if (size > limits.recordBytes)
      throw refuse(
        'NameTooLong',
        name,
        `has ${size} bytes of records before it; ${limits.recordBytes} are allowed`,
      )
    if (size === 0) throw refuse('RecordInvalid', name, 'has empty records before it')
    const content = await input.take(size)
    await input.skip(paddingOf(size))
    if (kind === 'longName') records = { ...records, path: parseLongName(content) }
    else if (kind === 'longTarget') records = { ...records, linkpath: parseLongName(content) }
    else {
      const parsed = parseRecords(content, kind === 'paxGlobal', limits)
      if (kind === 'pax') records = parsed
    }
    // After a pair nothing more may come.
    before = isPair ? undefined : kind
  }
}

const isLong = (kind: TarHeader['kind']) => kind === 'longName' || kind === 'longTarget'

function parseLongName(content: Buffer): string {
  const bytes = untilNul(content)
  requireUtf8(bytes.toString('latin1'), bytes)
  return bytes.toString()
}

function withRecords(
  header: MemberHeader,
  { path, linkpath, size: recorded }: PaxRecords,
  limits: ArchiveLimits,
): MemberHeader {
  const name = path ?? header.name
  // A record that replaces a size which the header can hold would make two archives of one, for two kinds of readers.
  if (
    recorded !== undefined &&
    recorded !== header.size &&
    (recorded < largeBytes || header.size >= largeBytes)
  )
    throw refuse('RecordInvalid', name, 'has two sizes in its tar headers')
  const size = recorded ?? header.size
  const isFolder = header.kind === 'folder' || header.name.endsWith('/') || name.endsWith('/')
  // Some readers skip the content of a folder, others read it as the next header.
  if (isFolder && size > 0) throw refuse('MemberKind', name, 'is a folder with content')
  if (size > limits.memberBytes)
    throw refuse('MemberTooLarge', name, `has ${size} bytes; ${limits.memberBytes} are allowed`)
  const { kind } = header
  const target = linkpath ?? header.target
  return { name, kind: isFolder ? 'folder' : kind, target, size }
}

async function requireEnd(input: Input): Promise<void> {
  if (!(await input.take(blockBytes)).equals(zeros))
    throw refuse('Damaged', undefined, 'has a block of zeros between its members; copy or build it again')
  for (let piece = await input.some(Infinity); piece !== undefined; piece = await input.some(Infinity))
    if (!isZero(piece)) throw refuse('TrailingBytes', undefined, 'has bytes after its end')
}

async function* readContent(input: Input, rest: { bytes: number }): AsyncGenerator<Buffer, void, undefined> {
  while (rest.bytes > 0) {
    const piece = await input.some(rest.bytes)
    if (piece === undefined) throw truncated()
    rest.bytes -= piece.length
    yield piece
  }
}

// Each byte equals the one before: memcmp(3) is a hundred times as fast as a loop.
const isZero = (bytes: Buffer) => bytes[0] === 0 && bytes.subarray(1).equals(bytes.subarray(0, -1))

/** Bytes between the content of a member and the next header. */
export const paddingOf = (size: number) => (blockBytes - (size % blockBytes)) % blockBytes

const truncated = () => refuse('Truncated', undefined, 'ends too early; copy it again')

/** The bytes of the source in pieces of a wanted size. */
function createInput(source: AsyncIterable<Buffer>) {
  const chunks = source[Symbol.asyncIterator]()
  let chunk: Buffer = Buffer.alloc(0)
  /** What is there, at most that many bytes; undefined at the end. */
  const some = async (atMost: number): Promise<Buffer | undefined> => {
    while (chunk.length === 0) {
      const next = await chunks.next()
      if (next.done) return undefined
      chunk = next.value
    }
    const piece = chunk.subarray(0, atMost)
    chunk = chunk.subarray(piece.length)
    return piece
  }
  return {
    some,
    /** Exactly that many bytes. @throws AppError Truncated */
    async take(bytes: number): Promise<Buffer> {
      if (chunk.length >= bytes) {
        const piece = chunk.subarray(0, bytes)
        chunk = chunk.subarray(bytes)
        return piece
      }
      const parts: Buffer[] = []
      for (let missing = bytes; missing > 0;) {
        const piece = await some(missing)
        if (piece === undefined) throw truncated()
        parts.push(piece)
        missing -= piece.length
      }
      return Buffer.concat(parts)
    },
    async skip(bytes: number): Promise<void> {
      for (let missing = bytes; missing > 0;) {
        const piece = await some(missing)
        if (piece === undefined) throw truncated()
        missing -= piece.length
      }
    },
    end: () => chunks.return?.(),
  }
}
