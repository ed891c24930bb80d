import { masked } from '../../base/mask.ts'
import { refusedField } from '../../errors/refused-field.ts'
import type { ClusterConfiguration } from '../schemas.ts'

/** A configuration as it is stored: without what the host itself says of it, and without a time for its beginning. */
export function storedForm({ metadata = {}, spec = {} }: ClusterConfiguration): ClusterConfiguration {
  const { name, labels, tags } = metadata
  const { archiveUploadPath, profileVariables, cloudConfig } = spec
  return {
    metadata: defined({ name, labels, tags }),
    spec: defined({ archiveUploadPath, profileVariables, cloudConfig }),
  }
}

type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> }

const defined = <T extends object>(value: T): Defined<T> =>
  Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as Defined<T>

/** What is stored, with sensitive values masked and in plain text; the plain text is undefined where it cannot be read any more. */
export interface Stored {
  readonly posted: ClusterConfiguration
  readonly plain: ClusterConfiguration | undefined
}

/**
 * Puts the stored values in the place of masks, which GET gives for them.
 * @throws AppError BadRequest naming the place of a mask for a value that is not stored
 */
export function unmask(given: ClusterConfiguration, { posted, plain }: Stored): ClusterConfiguration {
  const { spec } = given
  if (!spec?.profileVariables) return given
  const known = posted.spec?.profileVariables ?? []
  const plainOnes = plain?.spec?.profileVariables ?? []
  return {
    ...given,
    spec: {
      ...spec,
      profileVariables: spec.profileVariables.map((each, index) => {
        if (each.value !== masked) return each
        const field = `spec.profileVariables[${index}].value`
        const found = findVariable(known, each)
        if (found === undefined)
          throw refusedField(
            field,
            'is masked, and no value of this variable is stored: give the value itself',
          )
        const value = plainOnes[found]?.value
        if (value === undefined)
          throw refusedField(
            field,
            'is masked, and the stored value cannot be read any more, since the secret of the state folder was replaced: give the value itself',
          )
        return { ...each, value }
      }),
    },
  }
}

/** A variable of a stored configuration, or of a part of one that is unchecked. */
interface Named {
  readonly name?: unknown
  readonly profileUid?: unknown
}
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Place of the variable among the stored ones: with the same profile, otherwise the only one that may be meant. */
export function findVariable(known: readonly Named[], { name, profileUid }: Named): number | undefined {
  const same = known.flatMap((each, index) => (textOf(each.name) === textOf(name) ? [index] : []))
  const uidOf = (index: number) => textOf(known[index]?.profileUid)
  const exact = same.find((index) => uidOf(index) === textOf(profileUid))
  if (exact !== undefined) return exact
  const possible = same.filter((index) => textOf(profileUid) === '' || uidOf(index) === '')
  return possible.length === 1 ? possible[0] : undefined
}
