import { isUnset } from '../../base/field-stance.ts'
import type {
  ClusterProblem,
  EdgeNativeClusterEntity,
  ProfileEntity,
  ClusterValidatorResponse,
  EdgeNativeClusterConfig,
} from './schemas.ts'
import type { Configuration, Pool, ClusterStore, ClusterRecord } from './store.ts'
import type { HostRecord } from '../hosts/store.ts'
import type { Profiles } from '../profiles/profiles.ts'
import type { ProfileRecord } from '../profiles/store.ts'
import type { ClusterRequest, ExaminedRequest } from './examine-request.ts'
import { givenIn } from './values.ts'
import type { DesiredIndex } from './downloads.ts'
import { setBackMs } from '../../base/time.ts'
import { AppError } from '../../errors/app-error.ts'
import { platformErrors } from '../codes.ts'

type Spec = EdgeNativeClusterEntity['spec']
type PoolEntity = NonNullable<Spec['machinepoolconfig']>[number]

const hostsPath = 'spec.machinepoolconfig[0].cloudConfig.edgeHosts'

/** The one host that is named for a cluster, or why it is not one. Pure. */
function namedHost({ machinepoolconfig: pools = [] }: Spec): string | ClusterProblem {
  const hosts = pools.flatMap(({ cloudConfig }) => cloudConfig?.edgeHosts ?? [])
  const [host] = hosts
  if (host && hosts.length === 1 && pools.length === 1) return host.hostUid
  const found =
    hosts.length === 0 ? 'no host is named' : `${hosts.length} hosts in ${pools.length} pools are named`
  return {
    code: 'NeedsOneHost',
    severity: 'error',
    path: hostsPath,
    message: `a cluster has exactly one host, in one pool; ${found}`,
  }
}

/** Configuration of a cluster for its host, but for its definition and its variables. Pure. @param hostUid the id that the host gives itself; empty where no host is known */
function toConfiguration({ metadata, spec }: EdgeNativeClusterEntity, hostUid: string): Configuration {
  const [pool] = spec.machinepoolconfig ?? []
  const { name, labels } = metadata
  return {
    metadata: { name, ...(labels ? { labels } : {}) },
    spec: {
      cloudConfig: {
        spec: {
          clusterConfig: spec.cloudConfig ?? {},
          machinePoolConfig: [toPool(pool ?? {}, hostUid)],
        },
      },
    },
  }
}

function toPool({ poolConfig = {}, cloudConfig }: PoolEntity, hostUid: string): Pool {
  const [named] = cloudConfig?.edgeHosts ?? []
  const { hostName = '', nic, nicName = '', staticIP = '', twoNodeCandidatePriority = '' } = named ?? {}
  const interfaceName = nicName || nic?.nicName || ''
  return {
    ...poolConfig,
    hosts: [
      {
        hostUid,
        ...(hostName === '' ? {} : { hostName }),
        ...(interfaceName === '' ? {} : { nicName: interfaceName }),
        // Compared with the host's own.
        ...(nic && !isUnset({ ...nic, nicName: '' }) ? { nic } : {}),
        ...(staticIP === '' ? {} : { staticIP }),
        ...(twoNodeCandidatePriority === '' ? {} : { twoNodeCandidatePriority }),
      },
    ],
  }
}

interface ClusterRequestsOptions {
  readonly store: Pick<ClusterStore, 'hasName'>
  readonly index: Pick<DesiredIndex, 'clusterOn'>
  readonly profiles: Pick<Profiles, 'findUsable'>
  readonly findHost: (uid: string) => HostRecord | undefined
  readonly findHostByOwnId: (hostUid: string) => HostRecord | undefined
}

/** Reads requests of users; their problems are a part of the result. */
export function createClusterRequests({
  store,
  index,
  profiles,
  findHost,
  findHostByOwnId,
}: ClusterRequestsOptions) {
  /** The profiles that are named, and their problems. */
  function findProfiles(entities: readonly ProfileEntity[], projectUid: string) {
    const problems: ClusterProblem[] = []
    const found: ProfileRecord[] = []
    const report = (code: string, path: string, message: string) =>
      problems.push({ code, severity: 'error', path, message })
    if (entities.length === 0) report('ProfileMissing', 'spec.profiles', 'a cluster has at least one profile')
    for (const [at, { uid = '', packValues = [], replaceWithProfile = '' }] of entities.entries()) {
      const path = `spec.profiles[${at}]`
      const profile = profiles.findUsable(uid, projectUid)
      if (!profile)
        report('ProfileNotFound', `${path}.uid`, 'there is no cluster profile with this uid in this scope')
      else if (found.some((each) => each.uid === uid))
        report('ProfileTwice', `${path}.uid`, 'the profile is named before; leave it out')
      else found.push(profile)
      if (replaceWithProfile !== '')
        report(
          'NothingToReplace',
          `${path}.replaceWithProfile`,
          'a new cluster has no profile to replace; name the one that it shall have as uid',
        )
      if (packValues.length > 0)
        report(
          'PackValuesGiven',
          `${path}.packValues`,
          'values of packs come from the profile; import another version of it, or use variables',
        )
    }
    return { found, problems }
  }

  /** The request of a creation. @param uid of the cluster */
  function requestOf(entity: EdgeNativeClusterEntity, projectUid: string, uid: string): ClusterRequest {
    const { metadata, spec } = entity
    const entities = spec.profiles ?? []
    const { found, problems } = findProfiles(entities, projectUid)
    const named = namedHost(spec)
    const hostOf = (id: string) => findHost(id) ?? findHostByOwnId(id)
    const candidate = typeof named === 'string' ? hostOf(named) : undefined
    const host = candidate?.projectUid === projectUid ? candidate : undefined
    if (typeof named !== 'string') problems.push(named)
    else problems.push(...hostProblems(host))
    if (store.hasName(projectUid, metadata.name))
      problems.push({
        code: 'ClusterExists',
        severity: 'error',
        path: 'metadata.name',
        message: `there is a cluster named ${metadata.name} in this scope`,
      })
    return {
      uid,
      projectUid,
      name: metadata.name,
      number: 1,
      host,
      problems,
      profiles: found,
      configuration: toConfiguration(entity, host?.hostUid ?? ''),
      given: givenIn(entities),
    }
  }

  function hostProblems(host: HostRecord | undefined): ClusterProblem[] {
    const path = 'spec.machinepoolconfig[0].cloudConfig.edgeHosts[0].hostUid'
    const problem = (code: string, severity: 'error' | 'warning', message: string): ClusterProblem => ({
      code,
      severity,
      path,
      message,
    })
    if (!host) return [problem('HostNotFound', 'error', 'there is no host with this uid in this scope')]
    const cluster = index.clusterOn(host.uid)
    return [
      ...(cluster ? [problem('HostInUse', 'error', `${host.name} has the cluster ${cluster.name}`)] : []),
      ...(host.isTwice
        ? [problem('HostIsTwice', 'error', `two hosts log in as ${host.name}; accept one of them first`)]
        : []),
      ...(host.health?.state === 'healthy'
        ? []
        : [problem('HostUnhealthy', 'warning', `${host.name} is not healthy; the cluster waits for it`)]),
    ]
  }

  return { requestOf, findProfiles }
}

/** Problems of changes to fields that a cluster keeps for life, but for a refused one. */
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

/** The problems of a request in the published shape, and as they are. */
export function toValidation(
  request: ClusterRequest,
  { problems, isPossible, templates }: ExaminedRequest,
): ClusterValidatorResponse {
  const resultsOf = (found: readonly ClusterProblem[], name: string, displayName: string) => ({
    name,
    displayName,
    errors: found.map(({ code, message }) => ({ code, message })),
  })
  const errors = problems.filter(({ severity }) => severity === 'error')
  const ofPools = errors.filter(({ path = '' }) => path.startsWith('spec.machinepoolconfig'))
  const pool = request.configuration.spec.cloudConfig.spec.machinePoolConfig[0].name ?? ''
  return {
    isPossible,
    problems: [...problems],
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

/** Reason that the host reports for the newest number. */
const saidOf = ({ conditions, number }: Said): string | undefined =>
  conditions.find(({ type, observedGeneration = 0 }) => type === 'Wanted' && observedGeneration >= number)
    ?.reason

/** Whether the host is known to have started the deletion. */
export const hasStartedDeletion = (cluster: Said): boolean =>
  ['Deleting', 'Deleted'].includes(saidOf(cluster) ?? '') ||
  ['Deleting', 'Deleted'].includes(cluster.heartbeat?.state ?? '')

/** Whether the host leaves the deletion alone until it is requested again. */
export const isDeletionRefused = (cluster: Said): boolean =>
  ['NewerOnHost', 'Refused'].includes(saidOf(cluster) ?? '')

const silentMs = 3_600_000

/** @throws AppError HostNotSilent for a host that was seen within the last hour */
export function requireSilent(host: HostRecord | undefined, now: number): void {
  const lastSeenAt = host?.health?.at ?? host?.createdAt ?? 0
  // A live host is seen again within a minute after the clock was set back; one that is gone would not be silent for years.
  if (now - lastSeenAt < silentMs && lastSeenAt - now <= setBackMs)
    throw new AppError(
      platformErrors.HostNotSilent,
      `${host?.name ?? 'the host'} was heard within the last hour; delete without forceDelete`,
    )
}
