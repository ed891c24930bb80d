// The ustar interchange format of POSIX.1-2024, pax(1): 512-byte headers, contents padded to 512 bytes.

const blockBytes = 512

/** The largest size that fits into a header: 11 octal digits. A larger one needs a pax record. */
export const largestTarSize = 0o77777777777

/** Header fields beside name, size and time. */
export interface HeaderOptions {
  /** Permission bits; by default the owner may read and write. */
  readonly mode?: number
  /** `0` is a regular file, `x` the pax records for the next header. */
  readonly type?: '0' | 'x'
}

/**
 * The header of a regular file, owned by root.
 * @param name at most 100 bytes of ASCII
 * @param size bytes, at most `largestTarSize`
 * @param modifiedAt milliseconds since 1970
 */
export function tarHeader(
  name: string,
  size: number,
  modifiedAt: number,
  { mode = 0o600, type = '0' }: HeaderOptions = {},
): Buffer {
  const block = Buffer.alloc(blockBytes)
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, '0')
  block.write(name, 0, 100, 'ascii')
  block.write(`${octal(mode, 7)}\0`, 100, 'ascii')
  block.write('0000000\0', 108, 'ascii')
  block.write('0000000\0', 116, 'ascii')
  block.write(`${octal(size, 11)}\0`, 124, 'ascii')
  block.write(`${octal(Math.max(0, Math.floor(modifiedAt / 1_000)), 11)}\0`, 136, 'ascii')
  // The checksum is computed with spaces in its own field.
  block.write(' '.repeat(8), 148, 'ascii')
  block.write(type, 156, 'ascii')
  block.write('ustar\0' + '00', 257, 'ascii')
  let sum = 0
  // By index: an iterator takes ten times as long, and an archive may have ten thousand files.
  for (let at = 0; at < blockBytes; at += 1) sum += block[at] ?? 0
  block.write(`${octal(sum, 6)}\0 `, 148, 'ascii')
  return block
}

/** The padding after a file of this size. */
export const tarPadding = (size: number): Buffer =>
  Buffer.alloc((blockBytes - (size % blockBytes)) % blockBytes)

/** The end of an archive: two blocks of zeros. */
export const tarEnd = (): Buffer => Buffer.alloc(2 * blockBytes)
