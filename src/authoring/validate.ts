import { checkDefinition } from '../definition/rules/check.ts'
import type { Problem } from '../definition/definition.ts'
import type { ExitName } from '../ctl/exit-codes.ts'
import { plural } from '../ctl/text.ts'
import { AppError } from '../errors/app-error.ts'
import type { CommandContext } from './command-context.ts'
import { openArchive } from './opened.ts'
import { renderProblems, sortProblems } from './problems.ts'

/** `edgehostctl definition validate FILE`: shows all problems of the archive, its form and its content. */
export async function validate(context: CommandContext, file: string): Promise<ExitName> {
  const problems = sortProblems(await findProblems(context, file))
  const errors = problems.filter(({ severity }) => severity === 'error').length
  await context.output.show({ file, isValid: errors === 0, problems }, (paper) =>
    renderProblems(problems, paper),
  )
  const warnings = problems.length - errors
  context.output.note(
    errors === 0
      ? `${file} can be used${warnings > 0 ? `; ${plural(warnings, 'warning')}` : ''}.`
      : `${file} cannot be used: ${plural(errors, 'error')}, ${plural(warnings, 'warning')}.`,
  )
  return errors === 0 ? 'ok' : 'failed'
}

/** All problems of a definition archive. */
export async function findProblems(context: CommandContext, file: string): Promise<Problem[]> {
  try {
    const { definition, problems } = await openArchive(context, file)
    return [...problems, ...checkDefinition(definition)]
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    const { member } = error.details ?? {}
    const place = typeof member === 'string' ? member : file
    return [{ code: error.code, severity: 'error', place, message: error.message }]
  }
}
