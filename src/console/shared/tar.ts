/** A regular file in an archive. */
export interface Member {
  readonly name: string
  /** Of its bytes. */
  readonly offset: number
  readonly size: number
}

/** This file is not a tar archive, or it is damaged. */
export class NotTar extends Error {}

const blockBytes = 512
const decoder = new TextDecoder()

function field(block: Uint8Array, at: number, length: number): string {
  const part = block.subarray(at, at + length)
  const end = part.indexOf(0)
  return decoder.decode(end === -1 ? part : part.subarray(0, end))
}

/** A number in octal digits, or in base 256 where its first bit is set (GNU). */
function numberOf(block: Uint8Array, at: number, length: number): number {
  const bytes = block.subarray(at, at + length)
  if (((bytes[0] ?? 0) & 0x80) !== 0) return bytes.slice(1).reduce((sum, byte) => sum * 256 + byte, 0)
  const digits = field(block, at, length).trim()
  return digits === '' ? 0 : Number.parseInt(digits, 8)
}

/** Records of a pax header, `LENGTH KEY=VALUE`. */
const paxRecords = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...text.matchAll(/\d+ ([^=\n]+)=([^\n]*)\n/g)].map(([, key = '', value = '']) => [key, value]),
  )

/**
 * The regular files of an uncompressed tar (ustar, GNU, pax), of which only the headers are read.
 * @throws NotTar
 */
export async function* membersOf(file: Blob): AsyncGenerator<Member> {
  let at = 0
  let longName: string | undefined
  let pax: Readonly<Record<string, string>> = {}
  while (at + blockBytes <= file.size) {
    const block = new Uint8Array(await file.slice(at, at + blockBytes).arrayBuffer())
    if (block.every((byte) => byte === 0)) return
    if (field(block, 257, 5) !== 'ustar') throw new NotTar()
    const type = String.fromCharCode(block[156] ?? 0)
    const size = pax.size === undefined ? numberOf(block, 124, 12) : Number(pax.size)
    const offset = at + blockBytes
    if (!Number.isSafeInteger(size) || size < 0 || offset + size > file.size) throw new NotTar()
    const text = () => file.slice(offset, offset + size).text()
    if (type === 'L') longName = (await text()).replace(/\0.*$/s, '')
    else if (type === 'x') pax = paxRecords(await text())
    else if (type !== 'g') {
      const short = field(block, 0, 100)
      const prefix = field(block, 257, 6) === 'ustar' ? field(block, 345, 155) : ''
      const name = pax.path ?? longName ?? (prefix === '' ? short : `${prefix}/${short}`)
      if (type === '0' || type === '\0') yield { name: name.replace(/^\.\//, ''), offset, size }
      longName = undefined
      pax = {}
    }
    at = offset + Math.ceil(size / blockBytes) * blockBytes
  }
}
