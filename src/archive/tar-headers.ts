import type { ArchiveLimits } from './limits.ts'
import { createMemberNames, requireUtf8 } from './member-names.ts'
import { refuse } from './refusal.ts'

/** What a header of an archive announces. */
export interface TarMember {
  /** Path below the top of the archive; empty for the top itself. */
  readonly path: string
  /** `other`: a device or a pipe, which no reader needs. */
  readonly kind: 'file' | 'folder' | 'link' | 'hardLink' | 'other'
  readonly sizeBytes: number
  /** What a link points to, unchecked. */
  readonly target: string
}

/** What comes after a header: `recordBytes` of records, which `addRecords` takes, a member, or nothing more. */
export type TarHeader = { readonly recordBytes: number } | { readonly member: TarMember } | 'end'

export const tarBlockBytes = 512

/** Bytes from the content of a member to the next header. */
export const paddedBytes = (size: number): number => Math.ceil(size / tarBlockBytes) * tarBlockBytes

const kinds: Readonly<Record<string, TarMember['kind']>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '1': 'hardLink',
  '2': 'link',
  '3': 'other',
  '4': 'other',
  '5': 'folder',
  '6': 'other',
}

/**
 * Reads the headers of an archive of images, one after the other: also links, and sizes of 8 GiB and more. Names and
 * limits are those of every archive. Formats: ustar and pax of POSIX.1-2024, pax(1); long names, long targets and
 * base-256 numbers of GNU tar, tar(5).
 */
export function createTarHeaders(limits: ArchiveLimits) {
  const names = createMemberNames(limits)
  let extension = ''
  let next: { path?: string; target?: string; size?: number } = {}

  return {
    /** @throws AppError */
    addHeader(header: Buffer): TarHeader {
      if (header.every((byte) => byte === 0)) return 'end'
      const prefix =
        header.toString('latin1', 257, 262) === 'ustar' && header[263] !== 0x20 ? field(header, 345, 155) : ''
      const short = field(header, 0, 100)
      const name = next.path ?? (prefix === '' ? short : `${prefix}/${short}`)
      const type = String.fromCharCode(header[156] ?? 0)
      if (number(header, 148, 8) !== checksumOf(header))
        throw refuse('Damaged', name, 'has a damaged header; copy the archive again')
      const size = next.size ?? number(header, 124, 12)
      if (size === undefined) throw refuse('RecordInvalid', name, 'has a damaged header')
      if ('xgLK'.includes(type)) {
        if (size > limits.recordBytes || size === 0)
          throw refuse(
            'RecordInvalid',
            name,
            `has ${size} bytes of records before it; 1 to ${limits.recordBytes} are allowed`,
          )
        extension = type
        return { recordBytes: size }
      }
      const kind = kinds[type]
      if (kind === undefined)
        throw refuse('MemberKind', name, 'is of a kind that is not known here, for example a sparse file')
      const target = next.target ?? field(header, 157, 100)
      next = {}
      if (kind !== 'file' && kind !== 'hardLink' && size > 0)
        throw refuse('MemberKind', name, 'has content, but is not a file')
      const isFolder = kind === 'folder' || (kind === 'file' && name.endsWith('/'))
      const path = names.admit(name, isFolder ? 'folder' : 'file')
      // A hard link has no content, whatever its size says (POSIX.1-2024 pax(1), linkname).
      const sizeBytes = kind === 'hardLink' ? 0 : size
      if (sizeBytes > limits.memberBytes)
        throw refuse('MemberTooLarge', name, `has ${sizeBytes} bytes; ${limits.memberBytes} are allowed`)
      return { member: { path, kind: isFolder ? 'folder' : kind, sizeBytes, target } }
    },
    /** @throws AppError */
    addRecords(content: Buffer): void {
      if (extension === 'L') next.path = text(content.subarray(0, zeroIn(content)))
      else if (extension === 'K') next.target = text(content.subarray(0, zeroIn(content)))
      else {
        for (const [key, value] of recordsOf(content)) {
          if (key !== 'path' && key !== 'linkpath' && key !== 'size' && !key.startsWith('GNU.sparse.'))
            continue
          if (extension === 'g' || key.startsWith('GNU.sparse.'))
            throw refuse(
              'RecordInvalid',
              next.path,
              `has the record ${key} in its tar header, which is not allowed`,
            )
          if (key === 'path') next.path = text(value)
          else if (key === 'linkpath') next.target = text(value)
          else next.size = sizeOf(value, next.path)
        }
      }
    },
  }
}

function sizeOf(value: Buffer, name: string | undefined): number {
  const digits = value.toString('latin1')
  const size = /^\d{1,16}$/.test(digits) ? Number(digits) : NaN
  if (!Number.isSafeInteger(size)) throw refuse('RecordInvalid', name, 'has a size that is not a number')
  return size
}

/** Records of pax: `LENGTH KEY=VALUE\n`, LENGTH of the whole record. */
function* recordsOf(content: Buffer): Generator<[string, Buffer]> {
  for (let at = 0; at < content.length;) {
    const space = content.indexOf(0x20, at)
    const digits = space < 0 || space - at > 6 ? '' : content.toString('latin1', at, space)
    const next = at + (/^[1-9]\d*$/.test(digits) ? Number(digits) : 0)
    const equals = content.indexOf('=', space + 1)
    if (next === at || next > content.length || content[next - 1] !== 0x0a || equals < 0 || equals >= next)
      throw refuse('RecordInvalid', undefined, 'has malformed records in a tar header')
    yield [content.toString('latin1', space + 1, equals), content.subarray(equals + 1, next - 1)]
    at = next
  }
}

const zeroIn = (bytes: Buffer) => (bytes.includes(0) ? bytes.indexOf(0) : bytes.length)

function text(bytes: Buffer): string {
  const name = bytes.toString('utf8')
  requireUtf8(name, bytes)
  return name
}

function field(header: Buffer, from: number, length: number): string {
  const whole = header.subarray(from, from + length)
  return text(whole.subarray(0, zeroIn(whole)))
}

/** The sum of all bytes; the checksum field itself counts as spaces. */
function checksumOf(header: Buffer): number {
  let sum = 8 * 0x20
  for (let at = 0; at < header.length; at++) if (at < 148 || at >= 156) sum += header[at] ?? 0
  return sum
}

/** Octal digits between spaces or zeros, or base-256 with the top bit set. */
function number(header: Buffer, from: number, length: number): number | undefined {
  const bytes = header.subarray(from, from + length)
  if (((bytes[0] ?? 0) & 0x80) !== 0) {
    const value = bytes.subarray(1).reduce((sum, byte) => sum * 256 + byte, (bytes[0] ?? 0) & 0x7f)
    return Number.isSafeInteger(value) ? value : undefined
  }
  const digits = bytes.subarray(0, zeroIn(bytes)).toString('latin1').trim()
  if (digits === '') return 0
  return /^[0-7]{1,12}$/.test(digits) ? Number.parseInt(digits, 8) : undefined
}
