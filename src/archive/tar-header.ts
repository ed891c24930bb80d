import type { ArchiveLimits } from './limits.ts'
import { requireUtf8 } from './member-names.ts'
import { refuse, showName } from './refusal.ts'

/** What a header of 512 bytes describes: a member, or records for what follows it. */
export interface TarHeader {
  readonly kind: 'file' | 'folder' | 'link' | 'hardLink' | 'pax' | 'paxGlobal' | 'longName' | 'longTarget'
  readonly name: string
  /** What a link points to, unchecked; empty for other kinds. */
  readonly target: string
  /** Bytes that follow the header, without padding; a record of pax may replace it. */
  readonly size: number
}

/** Sizes of this and more do not fit into the octal digits of a header. */
export const largeBytes = 2 ** 33

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
export function parseHeader(block: Buffer, limits: ArchiveLimits): TarHeader {
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
export function untilNul(bytes: Buffer): Buffer {
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
