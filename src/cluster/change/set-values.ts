import type { ClusterConfiguration } from '../schemas.ts'

type Given = NonNullable<NonNullable<ClusterConfiguration['spec']>['profileVariables']>[number]

/**
 * Values with some of them replaced or added. A value without a profile is that of the only one with its name, whatever the profile;
 * where several profiles have the name, it is added, and the check of the configuration says that it needs a profile. Pure.
 */
export function setValues(present: readonly Given[], more: readonly Given[]): readonly Given[] {
  return more.reduce<readonly Given[]>((values, { name = '', profileUid = '', value = '' }) => {
    const same = values.filter((each) => (each.name ?? '') === name)
    const exact = same.find((each) => (each.profileUid ?? '') === profileUid)
    const possible = same.filter((each) => profileUid === '' || (each.profileUid ?? '') === '')
    const found = exact ?? (possible.length === 1 ? possible[0] : undefined)
    if (found) return values.map((each) => (each === found ? { ...each, value } : each))
    return [...values, { name, ...(profileUid === '' ? {} : { profileUid }), value }]
  }, present)
}
