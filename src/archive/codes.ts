import { byProgram, documentPath, program } from '../base/program.ts'
import { defineErrors } from '../errors/define-errors.ts'

/** Errors of archives. */
export const archiveErrors = defineErrors({
  ArchiveInvalid: {
    status: 400,
    meaning: `The archive has a member that a ${byProgram({ host: 'definition or a bundle', platform: 'pack' })} may not have; details.member names it, details.reason names the rule.`,
    action: byProgram({
      host: `Build it with edgehostctl definition build, or edgehostctl content build; ${documentPath('definition-format.md')} and ${documentPath('bundle-format.md')} say what is allowed.`,
      platform: `Send the folder of the pack with edgeplatformctl pack upload; ${documentPath('definition-format.md')} says what is allowed.`,
    }),
  },
  ArchiveDamaged: {
    status: 400,
    meaning: 'The archive is damaged: it is cut off, was altered, or is not an archive.',
    action: byProgram({
      host: 'Copy it again; edgehostctl definition validate FILE, or edgehostctl content inspect FILE, checks it on any machine.',
      platform: 'Make it again, or send the folder of the pack with edgeplatformctl pack upload.',
    }),
  },
  ArchiveTooLarge: {
    status: 400,
    meaning: `The archive unpacks to more than the ${program.noun} accepts; details.member names the member.`,
    action: `Remove what is not needed, or split the ${byProgram({ host: 'definition or bundle', platform: 'pack' })}.`,
  },
})
