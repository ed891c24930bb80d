import type { ArchiveLimits } from './limits.ts'
import { requireUtf8 } from './member-names.ts'
import { refuse, showName } from './refusal.ts'
import { checkRecords } from './tar-records.ts'

/** Checks the headers of a tar archive and accepts only what every tar reader understands in the same way. */
export interface TarFrames {
  /** @throws AppError at the first header that is refused */
  check(chunk: Uint8Array): void
}

const blockBytes = 512
const extension = { pax: 'x', paxGlobal: 'g', longName: 'L' } as const
const kinds: Readonly<Record<string, string>> = {
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
 * The rules for headers, checked on the raw bytes: regular files and folders, sizes in plain octal, no setuid and
 * setgid, short records before a member. The unpacking library decodes names leniently, treats an unknown type as a
 * file and lets records override a size, so that two readers may see two archives. None of that reaches the library.
 * Format: ustar and pax of POSIX.1-2024, pax(1); long names of GNU tar, tar(5).
 */
export function createTarFrames(limits: ArchiveLimits): TarFrames {
  const header = Buffer.alloc(blockBytes)
  let records: Buffer | undefined
  let kind = ''
  let filled = 0
  // Remaining bytes of the current member: content and padding.
  let remaining = 0
  let isEnded = false

  const begin = (): void => {
    // Zeros mark the end. The library checks that there are two such blocks and only zeros after them.
    if (header.every((byte) => byte === 0)) {
      isEnded = true
      return
    }
    const folder = latin(header, 345, 155)
    const name = folder === '' ? latin(header, 0, 100) : `${folder}/${latin(header, 0, 100)}`
    kind = String.fromCharCode(header[156] ?? 0)
    const size = octal(header, 124, 12)
    const mode = octal(header, 100, 8)
    if (octal(header, 148, 8) !== checksumOf(header))
      throw refuse('Damaged', name, 'has a damaged header; copy the archive again')
    if (size === undefined || mode === undefined)
      throw refuse('RecordInvalid', name, 'has a damaged header, or a size of 8 GiB and more')
    const isExtension = (Object.values(extension) as string[]).includes(kind)
    if (!isExtension) {
      checkKind(name, size)
      if ((mode & 0o6000) !== 0)
        throw refuse(
          'MemberMode',
          name,
          'is setuid or setgid; run chmod ug-s on the file and build the archive again',
        )
      for (const [from, length] of [
        [0, 100],
        [345, 155],
      ] as const)
        requireUtf8(name, field(header, from, length))
      if (size > limits.memberBytes)
        throw refuse('MemberTooLarge', name, `has ${size} bytes; ${limits.memberBytes} are allowed`)
    } else if (size > limits.recordBytes) {
      throw refuse(
        'NameTooLong',
        name,
        `has ${size} bytes of records before it; ${limits.recordBytes} are allowed`,
      )
    } else records = Buffer.alloc(size)
    remaining = Math.ceil(size / blockBytes) * blockBytes
    if (isExtension && size === 0) throw refuse('RecordInvalid', name, 'has empty records before it')
  }

  const checkKind = (name: string, size: number): void => {
    if (kind === '5' || kind === '0' || kind === '\0') {
      // Some readers skip the content of a folder, others read it as the next header.
      if ((kind === '5' || latin(header, 0, 100).endsWith('/')) && size > 0)
        throw refuse('MemberKind', name, 'is a folder with content')
      return
    }
    throw refuse(
      'MemberKind',
      name,
      `is ${kinds[kind] ?? `of the unknown type ${showName(kind)}`}; a definition holds regular files and folders only`,
    )
  }

  const endRecords = (content: Buffer): void => {
    if (kind === extension.longName)
      requireUtf8(content.toString('latin1'), content.subarray(0, zeroIn(content)))
    else checkRecords(content, kind === extension.paxGlobal)
  }

  return {
    check(chunk) {
      let at = 0
      while (at < chunk.length && !isEnded) {
        if (remaining > 0) {
          const taken = Math.min(remaining, chunk.length - at)
          if (records !== undefined && filled < records.length) {
            records.set(chunk.subarray(at, at + Math.min(taken, records.length - filled)), filled)
            filled += Math.min(taken, records.length - filled)
            if (filled === records.length) {
              endRecords(records)
              records = undefined
              filled = 0
            }
          }
          remaining -= taken
          at += taken
          continue
        }
        const taken = Math.min(blockBytes - filled, chunk.length - at)
        header.set(chunk.subarray(at, at + taken), filled)
        filled += taken
        at += taken
        if (filled < blockBytes) return
        filled = 0
        begin()
      }
    },
  }
}

const zeroIn = (bytes: Uint8Array) => (!bytes.includes(0) ? bytes.length : bytes.indexOf(0))

function field(header: Buffer, from: number, length: number): Buffer {
  const whole = header.subarray(from, from + length)
  return whole.subarray(0, zeroIn(whole))
}

const latin = (header: Buffer, from: number, length: number) => field(header, from, length).toString('latin1')

/** The sum of all bytes; the checksum field itself counts as spaces. */
function checksumOf(header: Buffer): number {
  let sum = 8 * 0x20
  for (let at = 0; at < header.length; at++) if (at < 148 || at >= 156) sum += header[at] ?? 0
  return sum
}

/** Parses a number in POSIX format: octal digits between spaces or zeros. The base-256 extension of GNU is refused. */
function octal(header: Buffer, from: number, length: number): number | undefined {
  const text = latin(header, from, length).trim()
  if (text === '') return 0
  return /^[0-7]{1,12}$/.test(text) ? Number.parseInt(text, 8) : undefined
}
