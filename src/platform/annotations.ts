import { refusedField } from '../errors/refused-field.ts'

type Texts = Readonly<Record<string, string>>

const most = 64

/**
 * The annotations after a change: those that it does not name stay, and one with an empty value is removed.
 * @throws AppError BadRequest for more than 64 of them together
 */
export function changedAnnotations(before: Texts, given: Texts = {}): Texts {
  const after = Object.fromEntries(
    Object.entries({ ...before, ...given }).filter(([, value]) => value !== ''),
  )
  if (Object.keys(after).length > most)
    throw refusedField(
      'metadata.annotations',
      `would be more than ${most} with those that are there; remove some, each by an empty value`,
    )
  return after
}
