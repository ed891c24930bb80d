import { AppError } from '../errors/app-error.ts'
import { archiveErrors } from './codes.ts'
import { escapeEach } from '../base/printable.ts'

/** Why an archive is refused; sent to the client as `details.reason`. */
export const reasons = {
  NotCompressed: 'ArchiveDamaged',
  Truncated: 'ArchiveDamaged',
  Damaged: 'ArchiveDamaged',
  TrailingBytes: 'ArchiveDamaged',
  SumDiffers: 'ArchiveDamaged',
  MemberMissing: 'ArchiveDamaged',
  MemberUnlisted: 'ArchiveInvalid',
  MemberTwice: 'ArchiveInvalid',
  MemberKind: 'ArchiveInvalid',
  MemberMode: 'ArchiveInvalid',
  MemberOutside: 'ArchiveInvalid',
  MemberName: 'ArchiveInvalid',
  RecordInvalid: 'ArchiveInvalid',
  DefinitionMissing: 'ArchiveInvalid',
  DefinitionUnreadable: 'ArchiveInvalid',
  FormatVersion: 'ArchiveInvalid',
  NotALayout: 'ArchiveInvalid',
  BlobName: 'ArchiveInvalid',
  BlobDiffers: 'ArchiveDamaged',
  TooManyMembers: 'ArchiveTooLarge',
  MemberTooLarge: 'ArchiveTooLarge',
  TooLarge: 'ArchiveTooLarge',
  RatioTooHigh: 'ArchiveTooLarge',
  WindowTooLarge: 'ArchiveTooLarge',
  NameTooLong: 'ArchiveTooLarge',
  MemoryLimit: 'ArchiveTooLarge',
  TimeLimit: 'ArchiveTooLarge',
} as const satisfies Record<string, keyof typeof archiveErrors>

export type Reason = keyof typeof reasons

// Characters that a terminal must not get, and meaningless ones: private use, and U+FFFD, which replaces bytes that are
// not UTF-8.
const invisible = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\ufffd]/gu
const shownCharacters = 200

/**
 * The refusal of an archive, 400 with one of three codes.
 * @param member name of the member concerned, unchecked
 * @param what the rest of the sentence, with what to do about it
 */
export function refuse(reason: Reason, member: string | undefined, what: string, cause?: unknown): AppError {
  const shown = member === undefined ? undefined : showName(member)
  const message = shown === undefined ? `the archive ${what}` : `${shown} ${what}`
  return new AppError(archiveErrors[reasons[reason]], message, {
    details: { reason, ...(shown === undefined ? {} : { member: shown }) },
    ...(cause === undefined ? {} : { cause }),
  })
}

/** A member's name for use in a message: without invisible characters and cut to a limit. */
export function showName(name: string): string {
  const cut = name.length > shownCharacters ? `${name.slice(0, shownCharacters)}...` : name
  return escapeEach(cut, invisible)
}
