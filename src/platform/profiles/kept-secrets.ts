import { isMask } from '../../base/mask.ts'
import { refusedField } from '../../errors/refused-field.ts'
import type { Variable } from '../schemas/profiles.ts'

/** Variables as they are stored, and as replies show them, in the same order. */
export interface StoredVariables {
  readonly stored: readonly Variable[]
  readonly shown: readonly Variable[]
}

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
              const from = before?.options?.[place]
              const was = seen?.options?.[place]
              const field = (name: string) => `options[${place}].${name}`
              const { label, description } = option
              const restoredLabel = restore(label, from?.label, was?.label, field('label'))
              const restoredText = restore(
                description,
                from?.description,
                was?.description,
                field('description'),
              )
              return {
                ...option,
                value: restore(option.value, from?.value, was?.value, field('value')) ?? '',
                ...(restoredLabel === undefined ? {} : { label: restoredLabel }),
                ...(restoredText === undefined ? {} : { description: restoredText }),
              }
            }),
          }),
    }
  })
}
