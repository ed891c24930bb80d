import type { ArchiveLimits } from './limits.ts'
import { requireUtf8 } from './member-names.ts'
import { refuse, showName } from './refusal.ts'

/** A parsed header of 512 bytes: of a member, or of records for what follows it. */
interface TarHeader {
  readonly kind: 'file' | 'folder' | 'link' | 'hardLink' | 'pax' | 'paxGlobal' | 'longName' | 'longTarget'
  readonly name: string
  /** Target of a link, unchecked; empty for other kinds. */
  readonly target: string
  /** Bytes that follow the header, without padding; a record of pax may replace it. */
  readonly size: number
}

/** Sizes of this and more do not fit into the octal digits of a header. */
const largeBytes = 2 ** 33

const kinds: Readonly<Record<string, TarHeader['kind']>> = {
  '\0': 'file',
  '0': 'file',
  '5': 'folder',
  x: 'pax',
  g: 'paxGlobal',
  L: 'longName',
}
const linkKinds: Readonly<Record<string, TarHeader['kind']>> = {
  '1': 'hardLink',
  '2': 'link',
  K: 'longTarget',
}
const refusedKinds: Readonly<Record<string, string>> = {
  '1': 'a hard link',
  '2': 'a symbolic link',
  '3': 'a device',
  '4': 'a device',
  '6': 'a named pipe',
  '7': 'a contiguous file',
  K: 'a link with a long target',
  S: 'a sparse file',
}

/**
 * Parses a header and accepts only what every tar reader understands in the same way: regular files and folders, links
 * where the limits allow them, sizes in plain octal, or in base 256 where a member may be that large, no setuid and setgid.
 * Format: ustar and pax of POSIX.1-2024, pax(1); long names and base 256 of GNU tar, tar(5).
 * @throws AppError
 */
function parseHeader(block: Buffer, limits: ArchiveLimits): TarHeader {
  const ownName = field(block, 0, 100)
  // Other formats have other fields there.
  const folder = latin(field(block, 257, 6)) === 'ustar' ? field(block, 345, 155) : Buffer.alloc(0)
  const bytes = folder.length === 0 ? ownName : Buffer.concat([folder, Buffer.from('/'), ownName])
  const name = latin(bytes)
  if (octal(block, 148, 8) !== checksumOf(block))
    throw refuse('Damaged', name, 'has a damaged header; copy the archive again')
  const size = sizeOf(block, limits)
  const mode = octal(block, 100, 8)
  if (size === undefined || mode === undefined)
    throw refuse('RecordInvalid', name, 'has a damaged header, or a size of 8 GiB and more')
  const letter = String.fromCharCode(block[156] ?? 0)
  const kind = kinds[letter] ?? (limits.areLinksAllowed ? linkKinds[letter] : undefined)
  if (kind === undefined)
    throw refuse(
      'MemberKind',
      name,
      `is ${refusedKinds[letter] ?? `of the unknown type ${showName(letter)}`}; a ${limits.noun} holds regular files and folders only`,
    )
  if (kind !== 'file' && kind !== 'folder' && kind !== 'link' && kind !== 'hardLink')
    return { kind, name, target: '', size }
  if ((mode & 0o6000) !== 0)
    throw refuse(
      'MemberMode',
      name,
      'is setuid or setgid; run chmod ug-s on the file and build the archive again',
    )
  requireUtf8(name, bytes)
  if (kind === 'file' || kind === 'folder') return { kind, name: bytes.toString(), target: '', size }
  const target = field(block, 157, 100)
  requireUtf8(name, target)
  // A link has no content; some writers give a hard link the size of its file.
  return { kind, name: bytes.toString(), target: target.toString(), size: 0 }
}

/** The bytes up to the first NUL. */
function untilNul(bytes: Buffer): Buffer {
  const end = bytes.indexOf(0)
  return end === -1 ? bytes : bytes.subarray(0, end)
}

const field = (block: Buffer, from: number, length: number) => untilNul(block.subarray(from, from + length))

const latin = (bytes: Buffer) => bytes.toString('latin1')

/** The sum of all bytes; the checksum field itself counts as spaces. */
function checksumOf(block: Buffer): number {
  let sum = 8 * 0x20
  for (let at = 0; at < block.length; at++) if (at < 148 || at >= 156) sum += block[at] ?? 0
  return sum
}

function sizeOf(block: Buffer, limits: ArchiveLimits): number | undefined {
  if (block[124] !== 0x80 || limits.memberBytes < largeBytes) return octal(block, 124, 12)
  // Base 256: 11 bytes after the mark. More than 6 of them do not fit a number, nor any disk.
  return block.subarray(125, 130).some((byte) => byte !== 0) ? undefined : block.readUIntBE(130, 6)
}

/** Parses a number in POSIX format: octal digits between spaces or zeros. */
function octal(block: Buffer, from: number, length: number): number | undefined {
  const text = latin(field(block, from, length)).trim()
  if (text === '') return 0
  return /^[0-7]{1,12}$/.test(text) ? Number.parseInt(text, 8) : undefined
}

/** The records of a pax header, about the member that follows. */
interface PaxRecords {
  readonly path?: string
  /** Target of a link, where links are allowed. */
  readonly linkpath?: string
  readonly size?: number
}

const space = 0x20
const newline = 0x0a
const refused = /^(?:hdrcharset|GNU\.sparse\..*)$/

/**
 * Parses the records of a pax header, POSIX.1-2024 pax(1): `LENGTH KEY=VALUE\n`, LENGTH in decimal and of the whole
 * record. Only whole records are allowed, each key that counts once, and none that overrides the type of a member; its
 * size only where a member may be so large that the header cannot hold it.
 * @param isGlobal whether the header applies to all members that follow; it may not set a name or a size
 * @throws AppError
 */
function parseRecords(content: Buffer, isGlobal: boolean, limits: ArchiveLimits): PaxRecords {
  const found: { path?: string; linkpath?: string; size?: number } = {}
  for (const { key, value } of splitRecords(content, found)) {
    const isSize = key === 'size'
    if (
      refused.test(key) ||
      (key === 'linkpath' && !limits.areLinksAllowed) ||
      (isGlobal && (key === 'path' || key === 'linkpath' || isSize)) ||
      (isSize && limits.memberBytes < largeBytes)
    )
      throw refuse(
        'RecordInvalid',
        found.path,
        `has the record ${showName(key)} in its tar header, which is not allowed in a ${limits.noun}`,
      )
    if (key !== 'path' && key !== 'linkpath' && !isSize) continue
    if (found[key] !== undefined)
      throw refuse('RecordInvalid', found.path, `has the record ${showName(key)} twice in its tar header`)
    if (isSize) found.size = parseSize(value, found.path)
    else {
      found[key] = value.toString('utf8')
      requireUtf8(found[key], value)
    }
  }
  return found
}

function* splitRecords(content: Buffer, found: PaxRecords): Generator<{ key: string; value: Buffer }> {
  for (let at = 0; at < content.length;) {
    const end = content.indexOf(space, at)
    // Without leading zeros: each record is then at least as long as the bytes examined here.
    const digits = end === -1 || end - at > 6 ? '' : content.toString('latin1', at, end)
    const length = /^[1-9]\d*$/.test(digits) ? Number(digits) : 0
    const next = at + length
    const equals = content.indexOf('=', end + 1)
    if (
      length === 0 ||
      next > content.length ||
      content[next - 1] !== newline ||
      equals === -1 ||
      equals >= next
    )
      throw refuse('RecordInvalid', found.path, 'has malformed records in its tar header')
    yield {
      key: content.toString('latin1', end + 1, equals),
      value: content.subarray(equals + 1, next - 1),
    }
    at = next
  }
}

function parseSize(value: Buffer, path: string | undefined): number {
  const text = value.toString('latin1')
  if (!/^\d{1,15}$/.test(text)) throw refuse('RecordInvalid', path, 'has an invalid size in its tar header')
  return Number(text)
}

/** A member of an archive while it is read. */
export interface TarMember {
  /** As the archive spells it; `member-names.ts` has the rules for names. */
  readonly name: string
  readonly kind: 'file' | 'folder'
  readonly sizeBytes: number
  /** The bytes; the unread rest is skipped when the next member is requested. No piece is ever reused. */
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
        // No use that reads a stream allows links.
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

/** Source of the headers. */
export interface TarInput {
  /** Exactly that many bytes. @throws AppError Truncated */
  take(bytes: number): Promise<Buffer>
  skip(bytes: number): Promise<void>
}

type Input = ReturnType<typeof createInput>
type MemberKind = 'file' | 'folder' | 'link' | 'hardLink'
/** A member, as its header and the records before it describe it. */
type MemberHeader = TarHeader & { readonly kind: MemberKind }

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

/** The bytes of the source in pieces of a requested size. */
function createInput(source: AsyncIterable<Buffer>) {
  const chunks = source[Symbol.asyncIterator]()
  let chunk: Buffer = Buffer.alloc(0)
  /** The available bytes, at most that many; undefined at the end. */
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
