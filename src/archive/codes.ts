import { defineErrors } from '../errors/define-errors.ts'

/** Errors of archives. */
export const archiveErrors = defineErrors({
  ArchiveInvalid: {
    status: 400,
    meaning:
      'The archive has a member that a definition or a bundle may not have; details.member names it, details.reason names the rule.',
    action:
      'Build it with edgehostctl definition build, or edgehostctl content build; docs/definition-format.md and docs/bundle-format.md say what is allowed.',
  },
  ArchiveDamaged: {
    status: 400,
    meaning: 'The archive is damaged: it is cut off, was altered, or is not an archive.',
    action:
      'Copy it again; edgehostctl definition validate FILE, or edgehostctl content inspect FILE, checks it on any machine.',
  },
  ArchiveTooLarge: {
    status: 400,
    meaning: 'The archive unpacks to more than the host accepts; details.member names the member.',
    action: 'Remove what is not needed, or split the definition or bundle.',
  },
})
