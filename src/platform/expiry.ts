import { parseTime } from '../base/time.ts'
import { refusedField } from '../errors/refused-field.ts'

const longestLifeMs = 10 * 366 * 86_400_000

/**
 * The time at which a secret ends, from a body; milliseconds since 1970.
 * @throws AppError BadRequest for an invalid time, one that is over, or one more than ten years ahead
 */
export function expiryOf(text: string, now: number): number {
  const at = parseTime(text)
  if (at === undefined) throw refusedField('spec.expiry', 'is no time')
  if (at <= now) throw refusedField('spec.expiry', 'is over')
  if (at > now + longestLifeMs) throw refusedField('spec.expiry', 'is more than ten years ahead')
  return at
}
