import { requireUtf8 } from './member-names.ts'
import { refuse } from './refusal.ts'

const space = 0x20
const newline = 0x0a
const refused = /^(?:size|linkpath|hdrcharset|GNU\.sparse\..*)$/

/**
 * Checks the records of a pax header, POSIX.1-2024 pax(1): `LENGTH KEY=VALUE\n`, LENGTH in decimal and of the whole
 * record. Only whole records are allowed, and none that overrides the size or the type of a member.
 * @param isGlobal whether the header applies to all members that follow; it may not set a name either
 * @throws AppError
 */
export function checkRecords(content: Buffer, isGlobal: boolean): void {
  let at = 0
  let name: string | undefined
  while (at < content.length) {
    const end = content.indexOf(space, at)
    // Without leading zeros: each record is then at least as long as the bytes examined here.
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
      throw refuse('RecordInvalid', name, 'has malformed records in its tar header')
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
        `has the record ${key} in its tar header, which is not allowed in a definition`,
      )
    at = next
  }
}
