import type { ClusterProfileDetail } from '../../definition/schemas.ts'
import type { ClusterConfiguration } from '../schemas.ts'

type Given = NonNullable<NonNullable<ClusterConfiguration['spec']>['profileVariables']>[number]

/**
 * The values that were given before, for another definition: a value follows its profile, which is known by its uid, otherwise by its
 * name, as each version of a profile has a uid of its own. A value whose variable is gone is left out. Pure.
 */
export function carryValues(
  given: readonly Given[],
  before: readonly ClusterProfileDetail[],
  after: readonly ClusterProfileDetail[],
): readonly Given[] {
  const declares = ({ variables }: ClusterProfileDetail, name: string) =>
    variables.some((variable) => variable.name === name)
  const named = (uid: string) => before.find(({ profileUid }) => profileUid === uid)?.profileName
  return given.flatMap((each) => {
    const { name = '', profileUid = '' } = each
    if (profileUid === '') return after.some((profile) => declares(profile, name)) ? [each] : []
    const profile =
      after.find((candidate) => candidate.profileUid === profileUid) ??
      after.find(({ profileName }) => profileName === named(profileUid))
    return profile && declares(profile, name) ? [{ ...each, profileUid: profile.profileUid }] : []
  })
}
