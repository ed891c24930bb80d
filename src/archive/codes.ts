import { defineErrors } from '../errors/define-errors.ts'

/** Refusals of archives. */
export const archiveErrors = defineErrors({
  ArchiveInvalid: {
    status: 400,
    meaning:
      'The archive holds what a definition may not hold; details.member names it, details.reason says what is wrong.',
    action: 'Build it with edgehostctl definition build; docs/definition-format.md says what is allowed.',
  },
  ArchiveDamaged: {
    status: 400,
    meaning: 'The archive is not what was packed: cut off, altered, or no archive at all.',
    action: 'Copy it again; edgehostctl definition validate FILE checks it on any machine.',
  },
  ArchiveTooLarge: {
    status: 400,
    meaning:
      'The archive unpacks to more than the host accepts from a definition; details.member names what.',
    action: 'Take out what is not needed, or build it in parts.',
  },
})
