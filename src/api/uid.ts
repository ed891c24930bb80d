import { Type } from 'typebox'

const pattern = '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'
const expression = new RegExp(pattern)

/** A UUID as the daemon writes it; the schema of a parameter in a path. */
export const Uid = Type.String({
  pattern,
  accepts: 'a UUID in lower case, for example 3f2c5e2e-93a4-4c43-8f0e-0123456789ab',
  description: 'A UUID.',
})

/**
 * The text if it is a UUID. Whatever else stands in its place, a token perhaps, must not get into trail and journal.
 */
export function uidOf(text: unknown): string | undefined {
  return typeof text === 'string' && expression.test(text) ? text : undefined
}
