import { isUtf8 } from 'node:buffer'
import type { ArchiveLimits } from './limits.ts'
import { refuse } from './refusal.ts'

/** Checks the names of one archive, each once. */
export interface MemberNames {
  /**
   * Checks a name against the rules and against all earlier names.
   * @returns the path below the staging folder; empty for the archive's own folder, `./`
   * @throws AppError
   */
  admit(name: string, kind: 'file' | 'folder'): string
}

// Backslash and colon are separators on other systems; U+FFFD replaces bytes that are not UTF-8.
const forbidden = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\ufffd\\]/u
const drive = /^[A-Za-z]:/

/**
 * The rules for names: relative, inside the archive, UTF-8 without control characters, short, and unique, also on file
 * systems that ignore case or Unicode normalization.
 */
export function createMemberNames(limits: ArchiveLimits): MemberNames {
  // Folded path -> kind, and its first spelling.
  const known = new Map<string, { readonly path: string; readonly kind: 'file' | 'folder' | 'implied' }>()

  const enter = (path: string, kind: 'file' | 'folder' | 'implied') => {
    if (known.size >= limits.members)
      throw refuse('TooManyMembers', path, `exceeds the ${limits.members} members an archive may have`)
    known.set(fold(path), { path, kind })
  }

  return {
    admit(name, kind) {
      const path = checkName(name, limits)
      if (path === '') {
        if (kind === 'folder') return ''
        throw refuse('MemberName', name, 'does not name a file')
      }
      for (let slash = path.indexOf('/'); slash > 0; slash = path.indexOf('/', slash + 1)) {
        const folder = path.slice(0, slash)
        const present = known.get(fold(folder))
        if (present === undefined) enter(folder, 'implied')
        else if (present.kind === 'file')
          throw refuse('MemberTwice', name, `is inside ${present.path}, which is a file in this archive`)
        else if (present.path !== folder)
          throw refuse('MemberTwice', name, `is in a folder that also occurs as ${present.path}`)
      }
      const present = known.get(fold(path))
      if (
        present !== undefined &&
        !(present.kind === 'implied' && kind === 'folder' && present.path === path)
      )
        throw refuse(
          'MemberTwice',
          name,
          present.path === path
            ? 'occurs twice'
            : `is the same name as ${present.path} on file systems that ignore case or Unicode normalization`,
        )
      if (present === undefined) enter(path, kind)
      else known.set(fold(path), { path, kind })
      return path
    },
  }
}

/**
 * The rules that concern one name alone.
 * @returns the name without a leading `./` and a trailing `/`
 * @throws AppError
 */
function checkName(name: string, limits: ArchiveLimits): string {
  const bytes = Buffer.byteLength(name)
  if (bytes > limits.nameBytes)
    throw refuse('NameTooLong', name, `is a name of ${bytes} bytes; ${limits.nameBytes} are allowed`)
  if (name === '') throw refuse('MemberName', undefined, 'has a member without a name; build it again')
  if (forbidden.test(name))
    throw refuse(
      'MemberName',
      name,
      'is not a valid name: control characters, backslashes and bytes that are not UTF-8 are not allowed',
    )
  if (name.startsWith('/') || drive.test(name))
    throw refuse('MemberOutside', name, 'is an absolute path; members are named from the top of the archive')
  const path = name.replace(/^(?:\.\/)+/, '').replace(/\/$/, '')
  if (path === '' || path === '.') return ''
  const segments = path.split('/')
  if (segments.includes('..')) throw refuse('MemberOutside', name, 'points out of the archive with ..')
  if (segments.includes('') || segments.includes('.'))
    throw refuse('MemberName', name, 'has an empty segment or a dot as a segment')
  if (segments.length > limits.depth)
    throw refuse('NameTooLong', name, `is ${segments.length} folders deep; ${limits.depth} are allowed`)
  if (segments.some((segment) => Buffer.byteLength(segment) > limits.segmentBytes))
    throw refuse('NameTooLong', name, `has a part of more than ${limits.segmentBytes} bytes`)
  return path
}

/**
 * The rule that needs the bytes of a name.
 * @param name the bytes decoded in any way, for the message
 * @throws AppError
 */
export function requireUtf8(name: string, bytes: Uint8Array): void {
  if (!isUtf8(bytes)) throw refuse('MemberName', name, 'is a name that is not UTF-8')
}

// The fast path for almost all names; folding does not change them.
const plain = /^[ -~]*$/

// Upper case first: full case mapping makes the sharp s equal to ss, as case-insensitive file systems do.
const fold = (path: string): string =>
  plain.test(path) ? path.toLowerCase() : path.normalize('NFD').toUpperCase().toLowerCase().normalize('NFC')
