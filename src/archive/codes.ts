import { defineErrors } from '../errors/define-errors.ts'

/** Errors of archives. */
export const archiveErrors = defineErrors({
  ArchiveInvalid: {
    status: 400,
    meaning:
      'The archive has a member that a definition may not have; details.member names it, details.reason names the rule.',
    action: 'Build it with edgehostctl definition build; docs/definition-format.md says what is allowed.',
  },
  ArchiveDamaged: {
    status: 400,
    meaning: 'The archive is damaged: it is cut off, was altered, or is not an archive.',
    action: 'Copy it again; edgehostctl definition validate FILE checks it on any machine.',
  },
  ArchiveTooLarge: {
    status: 400,
    meaning:
      'The archive unpacks to more than the host accepts from a definition; details.member names the member.',
    action: 'Remove what is not needed, or split the definition.',
  },
})
