import { AppError } from './app-error.ts'
import { generalErrors } from './codes.ts'

/**
 * The refusal of a request with an error in its body or query: BadRequest, 400, with the field in `details`.
 * @param field its path, as JSON has it, for example `spec.hosts[0].name`
 * @param reason continues the sentence that the field begins
 */
export const refusedField = (field: string, reason: string) =>
  new AppError(generalErrors.BadRequest, `${field} ${reason}`, { details: { field } })

/**
 * Refuses a number that JSON.parse may have rounded, at any depth of a value without a type of its own.
 * @param field path of the value
 * @throws AppError BadRequest that names the number
 */
export function refuseRounded(value: unknown, field: string): void {
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value))
    throw refusedField(
      field,
      'is a whole number beyond 2^53, which is not stored exactly; write it as a text, in quotes',
    )
  if (typeof value !== 'object' || value === null) return
  for (const [key, below] of Object.entries(value))
    refuseRounded(below, Array.isArray(value) ? `${field}[${key}]` : `${field}.${key}`)
}

/**
 * Refuses a change that `If-Match` allows for another state only; a weak tag is never equal here (RFC 9110, 13.1.1).
 * @param etag of the present state
 * @param advice the changed resource, and what to do
 * @param details of the refusal
 * @throws AppError PreconditionFailed, 412
 */
export function requireTag(
  ifMatch: string | undefined,
  etag: string,
  advice = 'it was changed since it was read; read it again, and change that',
  details?: Readonly<Record<string, unknown>>,
): void {
  const isMeant = ifMatch?.split(',').some((tag) => ['*', etag].includes(tag.trim())) ?? true
  if (!isMeant) throw new AppError(generalErrors.PreconditionFailed, advice, details && { details })
}

/**
 * Reads a list of texts: without empty entries and repetitions.
 * @param problemOf why an entry is refused; it completes a sentence that begins with the field
 * @throws AppError BadRequest that names the entry
 */
export function readEntries(
  entries: readonly string[],
  field: string,
  most: number,
  problemOf: (entry: string) => string | undefined,
): readonly string[] {
  for (const [index, entry] of entries.entries()) {
    const problem = entry.trim() === '' ? undefined : problemOf(entry.trim())
    if (problem !== undefined) throw refusedField(`${field}[${index}]`, problem)
  }
  const all = [...new Set(entries.map((entry) => entry.trim()).filter(Boolean))]
  if (all.length > most) throw refusedField(field, `has ${all.length} entries; at most ${most} are possible`)
  return all
}

/**
 * Refuses a field that would be dropped.
 * @param path of the value, with the point behind it
 * @param what the value is, for people
 * @throws AppError BadRequest
 */
export function refuseUnknownFields(
  value: object,
  known: readonly string[],
  path: string,
  what: string,
): void {
  for (const name of Object.keys(value))
    if (!known.includes(name))
      throw refusedField(`${path}${name}`, `is not a field of ${what}; ${known.join(', ')} are`)
}
