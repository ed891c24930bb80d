import type { ArchiveLimits } from './limits.ts'
import { requireUtf8 } from './member-names.ts'
import { refuse, showName } from './refusal.ts'
import { largeBytes } from './tar-header.ts'

/** What the records of a pax header say about the member that follows. */
export interface PaxRecords {
  readonly path?: string
  /** What a link points to, where links are allowed. */
  readonly linkpath?: string
  readonly size?: number
}

const space = 0x20
const newline = 0x0a
const refused = /^(?:hdrcharset|GNU\.sparse\..*)$/

/**
 * Parses the records of a pax header, POSIX.1-2024 pax(1): `LENGTH KEY=VALUE\n`, LENGTH in decimal and of the whole
 * record. Only whole records are allowed, each key that counts once, and none that overrides the type of a member; its
 * size only where a member may be so large that the header cannot hold it.
 * @param isGlobal whether the header applies to all members that follow; it may not set a name or a size
 * @throws AppError
 */
export function parseRecords(content: Buffer, isGlobal: boolean, limits: ArchiveLimits): PaxRecords {
  const found: { path?: string; linkpath?: string; size?: number } = {}
  for (const { key, value } of splitRecords(content, found)) {
    const isSize = key === 'size'
    if (
      refused.test(key) ||
      (key === 'linkpath' && !limits.areLinksAllowed) ||
      (isGlobal && (key === 'path' || key === 'linkpath' || isSize)) ||
      (isSize && limits.memberBytes < largeBytes)
    )
      throw refuse(
        'RecordInvalid',
        found.path,
        `has the record ${showName(key)} in its tar header, which is not allowed in a ${limits.noun}`,
      )
    if (key !== 'path' && key !== 'linkpath' && !isSize) continue
    if (found[key] !== undefined)
      throw refuse('RecordInvalid', found.path, `has the record ${showName(key)} twice in its tar header`)
    if (isSize) found.size = parseSize(value, found.path)
    else {
      found[key] = value.toString('utf8')
      requireUtf8(found[key], value)
    }
  }
  return found
}

function* splitRecords(content: Buffer, found: PaxRecords): Generator<{ key: string; value: Buffer }> {
  for (let at = 0; at < content.length;) {
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
      throw refuse('RecordInvalid', found.path, 'has malformed records in its tar header')
    yield {
      key: content.toString('latin1', end + 1, equals),
      value: content.subarray(equals + 1, next - 1),
    }
    at = next
  }
}

function parseSize(value: Buffer, path: string | undefined): number {
  const text = value.toString('latin1')
  if (!/^\d{1,15}$/.test(text)) throw refuse('RecordInvalid', path, 'has an invalid size in its tar header')
  return Number(text)
}
