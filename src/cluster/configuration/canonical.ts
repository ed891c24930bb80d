import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'

// More than a configuration has; a body may be nested more deeply than a function can call itself.
const deepest = 32

/**
 * One text for all bodies that mean the same: keys in order, and without what is not set, which is empty text, an empty list or object,
 * and null.
 * @throws AppError BadRequest for a body that is nested too deeply
 */
export function canonicalText(value: unknown): string {
  return JSON.stringify(settled(value) ?? {})
}

/** @returns undefined for what is not set */
function settled(value: unknown, depth = 0): unknown {
  if (depth > deepest)
    throw new AppError(generalErrors.BadRequest, `the body is nested more than ${deepest} levels deep`)
  if (value === null || value === '') return undefined
  if (Array.isArray(value))
    return value.length === 0 ? undefined : value.map((each) => settled(each, depth + 1) ?? null)
  if (typeof value !== 'object') return value
  const entries = Object.entries(value)
    .map(([key, each]) => [key, settled(each, depth + 1)] as const)
    .filter(([, each]) => each !== undefined)
    .sort(([one], [other]) => (one < other ? -1 : 1))
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}
