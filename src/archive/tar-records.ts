import { requireUtf8 } from './member-names.ts'
import { refuse } from './refusal.ts'

const space = 0x20
const newline = 0x0a
const refused = /^(?:size|linkpath|hdrcharset|GNU\.sparse\..*)$/

/**
 * The records of a pax header, POSIX.1-2024 pax(1): `LENGTH KEY=VALUE\n`, LENGTH in decimal and of the whole record.
 * Nothing but whole records; none that overrules the size or the kind of a member.
 * @param isGlobal for all members that follow; then no name either
 * @throws AppError
 */
export function checkRecords(content: Buffer, isGlobal: boolean): void {
  let at = 0
  let name: string | undefined
  while (at < content.length) {
    const end = content.indexOf(space, at)
    // Without a leading zero: each record then takes at least as many bytes as are looked at for it.
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
      throw refuse('RecordInvalid', name, 'has records in its tar header that are not well formed')
    const key = content.toString('latin1', end + 1, equals)
    const value = content.subarray(equals + 1, next - 1)
    if (key === 'path') {
      name = value.toString('utf8')
      requireUtf8(name, value)
    }
    if (refused.test(key) || (isGlobal && key === 'path'))
      throw refuse(
        'RecordInvalid',
        name,
        `has the record ${key} in its tar header, which a definition may not have`,
      )
    at = next
  }
}
