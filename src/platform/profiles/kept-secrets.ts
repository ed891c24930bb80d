import { isDeepStrictEqual } from 'node:util'
import { isMask } from '../../base/mask.ts'
import { refusedField } from '../../errors/refused-field.ts'
import type { Variable } from './schemas.ts'

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
  // There may be many thousands.
  const places = new Map(stored.map(({ name }, at) => [name, at]))
  return given.map((variable, index) => {
    const at = places.get(variable.name) ?? -1
    const before = stored[at]
    const seen = shown[at]
    const placeBefore = createPlaces(variable.options ?? [], seen?.options ?? [])
    // A value that is not sensitive may consist of stars.
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
              const known = placeBefore(place)
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
 * Gives the place that an option had, by its label. Options whose label is not theirs alone have their place where all of them stayed as they
 * were.
 * @param shown the options of the variable as replies show them
 */
function createPlaces(given: readonly Option[], shown: readonly Option[]) {
  const [ofGiven, ofShown] = [placesByLabel(given), placesByLabel(shown)]
  const untouched = new Map(
    [...ofGiven].map(([label, places]) => [
      label,
      isDeepStrictEqual(places, ofShown.get(label)) &&
        places.every((at) => isDeepStrictEqual(given[at], shown[at])),
    ]),
  )
  return (place: number): number | undefined => {
    const label = labelOf(given[place])
    const [places = [], before = []] = [ofGiven.get(label), ofShown.get(label)]
    if (label !== '' && places.length === 1 && before.length === 1) return before[0]
    return untouched.get(label) === true ? place : undefined
  }
}

const labelOf = (option: Option | undefined) => option?.label ?? ''
const placesByLabel = (options: readonly Option[]) =>
  Map.groupBy(options.keys(), (at) => labelOf(options[at]))

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
