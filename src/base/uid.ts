import { randomUUID } from 'node:crypto'
import { Type } from 'typebox'

const pattern = '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'
const expression = new RegExp(pattern)

/** A UUID as the daemon writes it; the schema of a path parameter. */
export const Uid = Type.String({
  pattern,
  accepts: 'a UUID in lower case, for example 3f2c5e2e-93a4-4c43-8f0e-0123456789ab',
  description: 'A UUID.',
})

/** The text if it is a UUID. Other text, perhaps a token, must not be written to the trail or the journal. */
export function uidOf(text: unknown): string | undefined {
  return typeof text === 'string' && expression.test(text) ? text : undefined
}

/** A UUID of version 7 (RFC 9562), so that an index of them grows only at its end. */
export function uuidAt(now: number): string {
  const time = Math.max(0, now).toString(16).padStart(12, '0').slice(-12)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}
