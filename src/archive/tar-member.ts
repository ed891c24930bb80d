import { createHash } from 'node:crypto'
import { tarHeader, tarPadding } from './ustar.ts'

// 1980: the oldest time that zip can represent, and recent enough that tar(1) finds it plausible.
const modifiedAt = Date.UTC(1980, 0, 1)
const mode = 0o644
const plain = /^[\x20-\x7e]{1,100}$/

/**
 * The header of a member: the same bytes for the same name and size, independent of owner and time of the file. A name
 * that is long or not ASCII goes into a pax record, POSIX.1-2024 pax(1).
 */
export function memberHeader(name: string, size: number): Buffer {
  if (plain.test(name)) return tarHeader(name, size, modifiedAt, { mode })
  const record = paxRecord('path', name)
  // The name that a reader without pax support shows.
  const short = createHash('sha256').update(name).digest('hex').slice(0, 16)
  return Buffer.concat([
    tarHeader(`PaxHeaders/${short}`, record.length, modifiedAt, { mode, type: 'x' }),
    record,
    tarPadding(record.length),
    tarHeader(`long-name/${short}`, size, modifiedAt, { mode }),
  ])
}

/** `LENGTH KEY=VALUE\n`; LENGTH includes its own digits. */
function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.from(` ${key}=${value}\n`)
  let length = rest.length + 1
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length
  return Buffer.concat([Buffer.from(String(length)), rest])
}
