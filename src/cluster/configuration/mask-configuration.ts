import { masked } from '../../base/mask.ts'
import type { Prepared, PreparedVariable } from '../prepare/prepared.ts'
import type { ClusterConfiguration } from '../schemas.ts'

/** What was posted, with the values of sensitive variables masked. */
export function maskConfiguration(
  posted: ClusterConfiguration,
  variables: readonly PreparedVariable[],
): ClusterConfiguration {
  const { spec } = posted
  if (!spec?.profileVariables) return posted
  const isSensitive = (name: string, uid: string) =>
    variables.some(
      (each) => each.name === name && each.isSensitive && (uid === '' || each.profileUid === uid),
    )
  return {
    ...posted,
    spec: {
      ...spec,
      profileVariables: spec.profileVariables.map((given) =>
        (given.value ?? '') !== '' && isSensitive(given.name ?? '', given.profileUid ?? '')
          ? { ...given, value: masked }
          : given,
      ),
    },
  }
}

/** Values of sensitive variables that may not be shown anywhere. */
export const sensitiveValues = ({
  variables,
  derived,
}: Pick<Prepared, 'variables' | 'derived'>): readonly string[] => [
  ...new Set([
    ...variables.flatMap(({ isSensitive, value }) => (isSensitive && value !== '' ? [value] : [])),
    ...derived,
  ]),
]
