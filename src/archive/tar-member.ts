import { createHash } from 'node:crypto'
import { largestTarSize, tarHeader, tarPadding } from './ustar.ts'

// 1980: the oldest time that zip can represent, and recent enough that tar(1) finds it plausible.
const modifiedAt = Date.UTC(1980, 0, 1)
const mode = 0o644
const plain = /^[\x20-\x7e]{1,100}$/

/**
 * The header of a member: the same bytes for the same name and size, independent of owner and time of the file. A name
 * that is long or not ASCII, and a size of 8 GiB and more, go into pax records, POSIX.1-2024 pax(1).
 */
export function memberHeader(name: string, size: number): Buffer {
  const isPlain = plain.test(name)
  if (isPlain && size <= largestTarSize) return tarHeader(name, size, modifiedAt, { mode })
  const records = Buffer.concat([
    ...(isPlain ? [] : [paxRecord('path', name)]),
    ...(size <= largestTarSize ? [] : [paxRecord('size', String(size))]),
  ])
  // The name that a reader without pax support shows.
  const short = createHash('sha256').update(name).digest('hex').slice(0, 16)
  return Buffer.concat([
    tarHeader(`PaxHeaders/${short}`, records.length, modifiedAt, { mode, type: 'x' }),
    records,
    tarPadding(records.length),
    // If the record gives the size, the field is 0, as other writers leave it.
    tarHeader(isPlain ? name : `long-name/${short}`, size <= largestTarSize ? size : 0, modifiedAt, { mode }),
  ])
}

/** `LENGTH KEY=VALUE\n`; LENGTH includes its own digits. */
function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.from(` ${key}=${value}\n`)
  let length = rest.length + 1
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length
  return Buffer.concat([Buffer.from(String(length)), rest])
}
