import { createHash } from 'node:crypto'
import { tarHeader, tarPadding } from './ustar.ts'

// 1980: as old as zip can say, and not so old that tar(1) finds it implausible.
const modifiedAt = Date.UTC(1980, 0, 1)
const mode = 0o644
const plain = /^[\x20-\x7e]{1,100}$/

/**
 * What stands before the content of a member: the same bytes for the same name and size, whatever owner the file has and
 * whenever it was written. A name that is long or not ASCII goes into a record of pax, POSIX.1-2024 pax(1).
 */
export function memberHeader(name: string, size: number): Buffer {
  if (plain.test(name)) return tarHeader(name, size, modifiedAt, { mode })
  const record = paxRecord('path', name)
  // What a reader without pax would call it.
  const short = createHash('sha256').update(name).digest('hex').slice(0, 16)
  return Buffer.concat([
    tarHeader(`PaxHeaders/${short}`, record.length, modifiedAt, { mode, type: 'x' }),
    record,
    tarPadding(record.length),
    tarHeader(`long-name/${short}`, size, modifiedAt, { mode }),
  ])
}

/** `LENGTH KEY=VALUE\n`; LENGTH counts itself too. */
function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.from(` ${key}=${value}\n`)
  let length = rest.length + 1
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length
  return Buffer.concat([Buffer.from(String(length)), rest])
}
