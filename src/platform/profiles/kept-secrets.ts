import { isDeepStrictEqual } from 'node:util'
import { isMask } from '../../base/mask.ts'
import { refusedField } from '../../errors/refused-field.ts'
import type { Variable } from '../schemas/profiles.ts'

/** Variables as they are stored, and as replies show them, in the same order. */
export interface StoredVariables {
  readonly stored: readonly Variable[]
  readonly shown: readonly Variable[]
}

type Option = NonNullable<Variable['options']>[number]

type Restore = (
  text: string | undefined,
  stored: string | undefined,
  shown: string | undefined,
  field: string,
) => string | undefined

/**
 * The variables of a change, with the stored secrets where the masks of a reply were sent back. A mask is never stored as a value, and a secret
 * does not become a value that is shown: a variable that is no longer sensitive needs its value.
 * @throws AppError BadRequest for a mask that stands for nothing
 */
export function restoreSecrets(given: readonly Variable[], { stored, shown }: StoredVariables): Variable[] {
  return given.map((variable, index) => {
    const at = stored.findIndex(({ name }) => name === variable.name)
    const before = stored[at]
    const seen = shown[at]
    // What is not sensitive may consist of stars.
    const mayBeRestored = variable.isSensitive === true || before?.isSensitive !== true
    const restore: Restore = (text, from, was, field) => {
      if (text === undefined || !isMask(text)) return text
      if (!mayBeRestored || from === undefined || text !== was)
        throw refusedField(`variables[${index}].${field}`, 'is a mask; give the value itself')
      return from
    }
    const { defaultValue, options, ...rest } = variable
    const restoredDefault = restore(defaultValue, before?.defaultValue, seen?.defaultValue, 'defaultValue')
    return {
      ...rest,
      ...(restoredDefault === undefined ? {} : { defaultValue: restoredDefault }),
      ...(options === undefined
        ? {}
        : {
            options: options.map((option, place) => {
              if (![option.value, option.label, option.description].some((text) => isMask(text ?? '')))
                return option
              const known = placeBefore(options, place, seen?.options ?? [])
              if (known === undefined)
                throw refusedField(
                  `variables[${index}].options[${place}]`,
                  'has a mask, and its label does not say which option it was; give the value itself',
                )
              return restoreOption(
                option,
                before?.options?.[known],
                seen?.options?.[known],
                (text, from, was, name) => restore(text, from, was, `options[${place}].${name}`),
              )
            }),
          }),
    }
  })
}

/**
 * The place that an option had, by its label. Options whose label is not theirs alone have their place where all of them stayed as they were.
 * @param shown the options of the variable as replies show them
 */
function placeBefore(given: readonly Option[], place: number, shown: readonly Option[]): number | undefined {
  const label = given[place]?.label ?? ''
  const placesIn = (options: readonly Option[]) =>
    options.flatMap((each, at) => ((each.label ?? '') === label ? [at] : []))
  const [places, before] = [placesIn(given), placesIn(shown)]
  if (label !== '' && places.length === 1 && before.length === 1) return before[0]
  const isUntouched =
    isDeepStrictEqual(places, before) && places.every((at) => isDeepStrictEqual(given[at], shown[at]))
  return isUntouched ? place : undefined
}

function restoreOption(
  { value, label, description, ...rest }: Option,
  from: Option | undefined,
  was: Option | undefined,
  restore: Restore,
): Option {
  const restoredLabel = restore(label, from?.label, was?.label, 'label')
  const restoredText = restore(description, from?.description, was?.description, 'description')
  return {
    ...rest,
    value: restore(value, from?.value, was?.value, 'value') ?? '',
    ...(restoredLabel === undefined ? {} : { label: restoredLabel }),
    ...(restoredText === undefined ? {} : { description: restoredText }),
  }
}
