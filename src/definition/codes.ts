import { defineErrors } from '../errors/define-errors.ts'

/** Refusals of definitions. */
export const definitionErrors = defineErrors({
  DefinitionInvalid: {
    status: 400,
    meaning:
      'The archive is whole, its content cannot be deployed; details.problems lists what is wrong, each with a code and a place.',
    action: 'Correct what is listed; docs/definition-problems.md says how. Build and upload it again.',
  },
})
