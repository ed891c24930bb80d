import { AppError } from './app-error.ts'
import { generalErrors } from './codes.ts'

/**
 * The refusal of a request whose body or query has something wrong: BadRequest, 400, with the field in `details`.
 * @param field its path, as JSON has it, for example `spec.hosts[0].name`
 * @param reason continues the sentence that the field begins
 */
export const refusedField = (field: string, reason: string) =>
  new AppError(generalErrors.BadRequest, `${field} ${reason}`, { details: { field } })
