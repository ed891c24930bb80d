import { isMask, masked } from '../../base/mask.ts'
import type { GivenVariable } from '../../definition/definition.ts'
import type { ProfileRecord } from '../profiles/store.ts'
import type { ClusterProblem, ClusterVariables, ClusterVariablesUpdate, ProfileEntity } from './schemas.ts'

type Profile = Pick<ProfileRecord, 'uid' | 'name' | 'shownVariables'>

/** Given values of the variables of a cluster; each names its profile. */
export type Given = readonly (Required<GivenVariable> & {
  /** Its variable was sensitive when it was stored: where a later declaration is not, it is not used any more. */
  readonly wasSensitive?: true
})[]

const isSame = (one: GivenVariable, other: GivenVariable) =>
  one.profileUid === other.profileUid && one.name === other.name

/** Values in the profiles of a request. Pure. */
export const givenIn = (entities: readonly Pick<ProfileEntity, 'uid' | 'variables'>[]): Given =>
  entities.flatMap(({ uid = '', variables = [] }) =>
    variables.map(({ name, value = '' }) => ({ name, profileUid: uid, value })),
  )

/** Values in a change of variables. Pure. */
export const givenInUpdate = (update: ClusterVariablesUpdate): Given =>
  givenIn(update.map(({ profileUid, variables = [] }) => ({ uid: profileUid, variables })))

function isSensitive(profiles: readonly Profile[], { profileUid, name }: GivenVariable): boolean {
  const { shownVariables = [] } = profiles.find(({ uid }) => uid === profileUid) ?? {}
  return shownVariables.find((variable) => variable.name === name)?.isSensitive === true
}

/**
 * The values after a change: the named ones are replaced, the others stay. The mask of a sensitive value that is sent back keeps the present
 * one: the stored value, or the default. Pure.
 */
export function changedValues(stored: Given, changes: Given, profiles: readonly Profile[]): Given {
  const isKept = (change: GivenVariable) => isMask(change.value) && isSensitive(profiles, change)
  const replaced = changes.filter((change) => !isKept(change))
  return [...stored.filter((each) => !replaced.some((change) => isSame(each, change))), ...replaced]
}

/** Whether two have the same values, marked alike, in whatever order. Pure. */
export function hasSameValues(one: Given, other: Given): boolean {
  const textsOf = (given: Given) =>
    given
      .map((each) => JSON.stringify([each.profileUid, each.name, each.value, each.wasSensitive === true]))
      .sort()
  return JSON.stringify(textsOf(one)) === JSON.stringify(textsOf(other))
}

/**
 * The stored values for other profiles: values of a profile go to the one that replaces it, and otherwise to the one of the same name; a
 * value that its profile does not declare is left out. Pure.
 * @param before the profiles of the cluster
 * @param replacedBy uid of a profile -> uid of its replacement
 */
export function carriedValues(
  stored: Given,
  before: readonly Pick<Profile, 'uid' | 'name'>[],
  after: readonly Profile[],
  replacedBy: ReadonlyMap<string, string>,
): Given {
  return stored.flatMap((value) => {
    const { name } = before.find(({ uid }) => uid === value.profileUid) ?? {}
    const heir =
      after.find(({ uid }) => uid === (replacedBy.get(value.profileUid) ?? value.profileUid)) ??
      after.find((profile) => profile.name === name)
    const isDeclared = heir?.shownVariables.some((variable) => variable.name === value.name) === true
    return isDeclared ? [{ ...value, profileUid: heir.uid }] : []
  })
}

/** The values as they are stored, sensitive ones marked. Pure. */
export const markedValues = (given: Given, profiles: readonly Profile[]): Given =>
  given.map((each) => (isSensitive(profiles, each) ? { ...each, wasSensitive: true } : each))

/** The values alone, for a host. Pure. */
export const plainValues = (given: Given): Required<GivenVariable>[] =>
  given.map(({ name, profileUid, value }) => ({ name, profileUid, value }))

/** Values that a declaration which is not sensitive any more would show to everyone who may read the cluster. Pure. */
export const exposedProblems = (given: Given, profiles: readonly Profile[]): ClusterProblem[] =>
  given
    .filter((each) => each.wasSensitive && each.value !== '' && !isSensitive(profiles, each))
    .map(({ name, profileUid }) => ({
      code: 'VariableInvalid',
      severity: 'error',
      profileUid,
      path: `profiles.${profileUid}.variables.${name}`,
      message: `the variable ${name} was sensitive when its value was given, and is not any more: give the value again`,
    }))

/** Values as replies show them. Pure. */
export const shownValues = (given: Given, profiles: readonly Profile[]): Given =>
  plainValues(given).map((each) =>
    each.value !== '' && isSensitive(profiles, each) ? { ...each, value: masked } : each,
  )

/**
 * The variables of the profiles of a cluster as they are now, with its values. Values that a draft has made sensitive since they were given are
 * masked too. Pure.
 */
export const toVariables = (
  shown: readonly GivenVariable[],
  profiles: readonly Profile[],
): ClusterVariables =>
  profiles.map(({ uid, shownVariables }) => ({
    profileUid: uid,
    variables: shownVariables.map((variable) => {
      const given = shown.find((each) => isSame(each, { name: variable.name, profileUid: uid, value: '' }))
      const value = given?.value ?? defaultOf(variable)
      return { ...variable, value: variable.isSensitive === true && value !== '' ? masked : value }
    }),
  }))

const defaultOf = ({ defaultValue = '', options = [] }: ProfileRecord['shownVariables'][number]): string =>
  defaultValue || (options.find((option) => option.default === true)?.value ?? '')
