import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { defineErrors } from '../errors/define-errors.ts'

/** Refusals of definitions. */
export const definitionErrors = defineErrors({
  DefinitionInvalid: {
    status: 400,
    meaning:
      'The archive is intact, but its content cannot be deployed; details.problems lists each error with a code and a place.',
    action:
      'Correct the listed errors; docs/definition-problems.md says how. Build the definition and upload it again.',
  },
})

/** A definition was replaced or removed since its handle was looked up. */
export const replacedDefinition = () =>
  new AppError(
    generalErrors.BadRequest,
    'archiveUploadPath names a definition that has just been replaced; use the path of the new one',
    { details: { field: 'archiveUploadPath' } },
  )
