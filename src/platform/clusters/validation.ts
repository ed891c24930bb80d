import { isUnset } from '../../base/field-stance.ts'
import { setBackMs } from '../../base/time.ts'
import { AppError } from '../../errors/app-error.ts'
import { platformErrors } from '../codes.ts'
import type { HostRecord } from '../hosts/host-store.ts'
import type {
  ClusterProblem,
  ClusterValidatorResponse,
  EdgeNativeClusterConfig,
} from '../schemas/clusters.ts'
import type { ClusterRecord } from './cluster-store.ts'
import type { ExaminedWish, Wish } from './examine-wish.ts'

/** What a cluster has for its whole life, but for what its host has refused. */
export function fixedProblems(
  given: EdgeNativeClusterConfig,
  present: EdgeNativeClusterConfig,
): ClusterProblem[] {
  return Object.entries(given).flatMap(([name, value]): ClusterProblem[] => {
    const is = (present as Readonly<Record<string, unknown>>)[name]
    if (isUnset(value) || JSON.stringify(value) === JSON.stringify(is)) return []
    const path = `clusterConfig.${name}`
    const message = `${path} stays as the cluster was created; to have another one, delete the cluster and create it again`
    return [{ code: 'CannotChange', severity: 'error', path, message }]
  })
}

/**
 * The address of the control plane that replaces one with which the host has refused the cluster; undefined where it stays. Pure.
 * While a host may still accept the newest number, another address would come too late.
 */
export function correctedEndpoint(
  { controlPlaneEndpoint: given }: EdgeNativeClusterConfig,
  { number, heartbeat, conditions }: Pick<ClusterRecord, 'number' | 'heartbeat' | 'conditions'>,
): EdgeNativeClusterConfig['controlPlaneEndpoint'] {
  const isRefused = conditions.some(
    ({ type, reason, observedGeneration }) =>
      type === 'Wanted' && reason === 'Refused' && observedGeneration === number,
  )
  return isRefused && (heartbeat?.number ?? 0) === 0 && !isUnset(given) ? given : undefined
}

/** The problems of a wish in the published shape, and as they are. */
export function toValidation(
  wish: Wish,
  { problems, isPossible, templates }: ExaminedWish,
): ClusterValidatorResponse {
  const resultsOf = (found: readonly ClusterProblem[], name: string, displayName: string) => ({
    ...{ name, displayName },
    errors: found.map(({ code, message }) => ({ code, message })),
  })
  const errors = problems.filter(({ severity }) => severity === 'error')
  const ofPools = errors.filter(({ path = '' }) => path.startsWith('spec.machinepoolconfig'))
  const pool = wish.configuration.spec.cloudConfig.spec.machinePoolConfig[0].name ?? ''
  return {
    ...{ isPossible, problems: [...problems] },
    machinePools: { results: ofPools.length > 0 ? [resultsOf(ofPools, pool, pool)] : [] },
    profiles: templates.map(({ uid }) => {
      const own = Map.groupBy(
        errors.filter(({ profileUid }) => profileUid === uid),
        ({ pack = '' }) => pack,
      )
      return { uid, packs: { results: [...own].map(([pack, found]) => resultsOf(found, pack, pack)) } }
    }),
  }
}

/** A number that is higher than all that the host has dealt with, also with a platform of which this one is an older copy. */
export const numberAfter = ({ number, heartbeat }: Said): number =>
  Math.max(number, heartbeat?.number ?? 0, heartbeat?.seenNumber ?? 0) + 1

type Said = Pick<ClusterRecord, 'number' | 'heartbeat' | 'conditions'>

/** What the host has said of the newest number. */
const saidOf = ({ conditions, number }: Said): string | undefined =>
  conditions.find(({ type, observedGeneration = 0 }) => type === 'Wanted' && observedGeneration >= number)
    ?.reason

/** Whether the host is known to have begun with the deletion. */
export const hasBegunDeletion = (cluster: Said): boolean =>
  ['Deleting', 'Deleted'].includes(saidOf(cluster) ?? '') ||
  ['Deleting', 'Deleted'].includes(cluster.heartbeat?.state ?? '')

/** Whether the host leaves the deletion alone until it is told once more. */
export const isDeletionRefused = (cluster: Said): boolean =>
  ['NewerOnHost', 'Refused'].includes(saidOf(cluster) ?? '')

const silentMs = 3_600_000

/** @throws AppError HostNotSilent for a host that was heard within the last hour */
export function requireSilent(host: HostRecord | undefined, now: number): void {
  const heardAt = host?.health?.at ?? host?.createdAt ?? 0
  // A host that is heard is so again within a minute after the clock was set back; one that is gone would not be silent for years.
  if (now - heardAt < silentMs && heardAt - now <= setBackMs)
    throw new AppError(
      platformErrors.HostNotSilent,
      `${host?.name ?? 'the host'} was heard within the last hour; delete without forceDelete`,
    )
}
