import { documentPath } from '../base/program.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { defineErrors } from '../errors/define-errors.ts'

/** Refusals of definitions. */
export const definitionErrors = defineErrors({
  DefinitionInvalid: {
    status: 400,
    meaning:
      'The archive is intact, but its content cannot be deployed; details.problems lists each error with a code and a place.',
    action: `Correct the listed errors; ${documentPath('definition-problems.md')} says how. Build the definition and upload it again.`,
  },
})

/** A definition was replaced or removed since its handle was looked up. */
export const replacedDefinition = () =>
  new AppError(
    generalErrors.BadRequest,
    'archiveUploadPath names a definition that has just been replaced; use the path of the new one',
    { details: { field: 'archiveUploadPath' } },
  )

/** Refusals of packs and profiles that a platform is given. */
export const importErrors = defineErrors({
  PackInvalid: {
    status: 400,
    meaning:
      'The archive is intact, but it is not the folder of one pack that can be a part of a definition; details.problems lists each error with a code and a place.',
    action: `Correct the listed errors; ${documentPath('definition-format.md')} says what a pack is.`,
  },
  ProfileInvalid: {
    status: 400,
    meaning:
      'The profile cannot be a part of a definition; details.problems lists each error with a code and a place.',
    action: `Correct the listed errors, or export the profile again; ${documentPath('definition-problems.md')} says how.`,
  },
})
