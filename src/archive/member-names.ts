import { isUtf8 } from 'node:buffer'
import type { ArchiveLimits } from './limits.ts'
import { refuse } from './refusal.ts'

/** The names of one archive, each looked at once. */
export interface MemberNames {
  /**
   * Checks a name against the law and against all before it.
   * @returns the path below the staging folder; the empty text for the archive's own folder, `./`
   * @throws AppError
   */
  admit(name: string, kind: 'file' | 'folder'): string
}

// Backslash and colon are separators on other systems; U+FFFD is what was no UTF-8.
const forbidden = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\ufffd\\]/u
const drive = /^[A-Za-z]:/

/**
 * The law of names: relative, inside, UTF-8 without control characters, short, and different from each other also
 * where a file system does not tell upper from lower case or composed from decomposed characters.
 */
export function createMemberNames(limits: ArchiveLimits): MemberNames {
  // Folded path -> what it is and how it was spelled first.
  const known = new Map<string, { readonly path: string; readonly kind: 'file' | 'folder' | 'implied' }>()

  const enter = (path: string, kind: 'file' | 'folder' | 'implied') => {
    if (known.size >= limits.members)
      throw refuse(
        'TooManyMembers',
        path,
        `is one more than the ${limits.members} members an archive may hold`,
      )
    known.set(fold(path), { path, kind })
  }

  return {
    admit(name, kind) {
      const path = checkName(name, limits)
      if (path === '') {
        if (kind === 'folder') return ''
        throw refuse('MemberName', name, 'names no file')
      }
      for (let slash = path.indexOf('/'); slash > 0; slash = path.indexOf('/', slash + 1)) {
        const folder = path.slice(0, slash)
        const present = known.get(fold(folder))
        if (present === undefined) enter(folder, 'implied')
        else if (present.kind === 'file')
          throw refuse('MemberTwice', name, `lies in ${present.path}, which is a file in this archive`)
        else if (present.path !== folder)
          throw refuse('MemberTwice', name, `lies in a folder that is also written ${present.path}`)
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
            ? 'is there twice'
            : `is the same name as ${present.path} where case or composition of letters does not count`,
        )
      if (present === undefined) enter(path, kind)
      else known.set(fold(path), { path, kind })
      return path
    },
  }
}

/**
 * The part of the law that needs no other name.
 * @returns the name without `./` before it and `/` behind it
 * @throws AppError
 */
function checkName(name: string, limits: ArchiveLimits): string {
  const bytes = Buffer.byteLength(name)
  if (bytes > limits.nameBytes)
    throw refuse('NameTooLong', name, `is a name of ${bytes} bytes; ${limits.nameBytes} are allowed`)
  if (name === '') throw refuse('MemberName', name, 'holds a member without a name')
  if (forbidden.test(name))
    throw refuse(
      'MemberName',
      name,
      'is no name: control characters, backslashes and what is no UTF-8 are refused',
    )
  if (name.startsWith('/') || drive.test(name))
    throw refuse('MemberOutside', name, 'is an absolute path; members are named from the top of the archive')
  const path = name.replace(/^(?:\.\/)+/, '').replace(/\/$/, '')
  if (path === '' || path === '.') return ''
  const segments = path.split('/')
  if (segments.includes('..')) throw refuse('MemberOutside', name, 'points out of the archive with ..')
  if (segments.includes('') || segments.includes('.'))
    throw refuse('MemberName', name, 'has an empty part or a dot between its slashes')
  if (segments.length > limits.depth)
    throw refuse('NameTooLong', name, `lies ${segments.length} folders deep; ${limits.depth} are allowed`)
  if (segments.some((segment) => Buffer.byteLength(segment) > limits.segmentBytes))
    throw refuse('NameTooLong', name, `has a part of more than ${limits.segmentBytes} bytes`)
  return path
}

/**
 * The part of the law that only the bytes of a name can tell.
 * @param name the bytes as text, however it came about, to say which it is
 * @throws AppError
 */
export function requireUtf8(name: string, bytes: Uint8Array): void {
  if (!isUtf8(bytes)) throw refuse('MemberName', name, 'is a name that is not UTF-8')
}

// Almost all names; what is said below makes no difference to them.
const plain = /^[ -~]*$/

// Upper first: full case mapping, so that the sharp s meets ss, as on file systems that fold.
const fold = (path: string): string =>
  plain.test(path) ? path.toLowerCase() : path.normalize('NFD').toUpperCase().toLowerCase().normalize('NFC')
