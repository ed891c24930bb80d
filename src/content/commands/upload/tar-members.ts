/** Bytes of a tar archive, read in order. */
export interface TarInput {
  /** Exactly so many bytes; fewer only at the end of the archive. */
  read(bytes: number): Promise<Buffer>
  skip(bytes: number): Promise<void>
  /** Bytes read and skipped so far. */
  position(): number
}

/** A file in a tar archive. Its content follows in the input; what is left of it is skipped before the next member. */
export interface TarMember {
  /** Without a leading `./`. */
  readonly name: string
  readonly sizeBytes: number
}

/** The archive is not one, or ends early. */
export class NotTar extends Error {}

const blockBytes = 512
const recordsLimit = 1_048_576

/**
 * The files of a tar archive: ustar and pax of POSIX.1-2024, pax(1), and long names and large sizes of GNU tar. It only finds
 * the blobs of a bundle; the host checks what it is sent.
 */
export async function* tarMembers(input: TarInput): AsyncGenerator<TarMember, void, undefined> {
  let longName: string | undefined
  let paxSize: number | undefined
  for (;;) {
    const header = await input.read(blockBytes)
    if (header.length === 0 || header.every((byte) => byte === 0)) return
    if (header.length < blockBytes || !isSummed(header))
      throw new NotTar('it is not a tar archive, or damaged')
    const kind = String.fromCharCode(header[156] ?? 0)
    const ownSize = numberIn(header.subarray(124, 136))
    const sizeBytes = paxSize ?? ownSize
    const end = input.position() + Math.ceil(sizeBytes / blockBytes) * blockBytes
    if ('xgLK'.includes(kind)) {
      if (ownSize > recordsLimit) throw new NotTar('a header of it is too large')
      const records = (await input.read(ownSize)).toString()
      if (kind === 'L') longName = textIn(records)
      if (kind === 'x') {
        const pax = paxRecords(records)
        longName = pax.get('path') ?? longName
        const given = pax.get('size')
        if (given !== undefined) paxSize = Number(given)
      }
      await input.skip(Math.ceil(ownSize / blockBytes) * blockBytes - ownSize)
      continue
    }
    const folder =
      header.toString('latin1', 257, 262) === 'ustar' ? textIn(header.toString('utf8', 345, 500)) : ''
    const short = textIn(header.toString('utf8', 0, 100))
    const name = (longName ?? (folder === '' ? short : `${folder}/${short}`)).replace(/^(?:\.\/)+/, '')
    longName = undefined
    paxSize = undefined
    if (kind === '0' || kind === '\0' || kind === '7') yield { name, sizeBytes }
    const left = end - input.position()
    if (left > 0) await input.skip(left)
  }
}

const textIn = (text: string) => text.split('\0', 1)[0] ?? ''

/** Octal digits, or base 256 with the first bit set. */
function numberIn(field: Buffer): number {
  if (((field[0] ?? 0) & 0x80) === 0)
    return Number.parseInt(textIn(field.toString('latin1')).trim() || '0', 8)
  let value = (field[0] ?? 0) & 0x7f
  for (const byte of field.subarray(1)) value = value * 256 + byte
  return value
}

/** The sum of all bytes; the checksum field itself counts as spaces. */
function isSummed(header: Buffer): boolean {
  let sum = 8 * 0x20
  for (const [at, byte] of header.entries()) if (at < 148 || at >= 156) sum += byte
  return sum === numberIn(header.subarray(148, 156))
}

/** `LENGTH KEY=VALUE\n`; the lengths are bytes, and keys that count here have values in ASCII or UTF-8 without line breaks. */
function paxRecords(text: string): Map<string, string> {
  const records = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [, key, value] = /^\d+ ([^=]+)=(.*)$/.exec(line) ?? []
    if (key !== undefined && value !== undefined) records.set(key, value)
  }
  return records
}
