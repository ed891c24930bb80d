import type { HostRecord } from '../hosts/host-store.ts'
import type { Profiles } from '../profiles/profiles.ts'
import type { ProfileRecord } from '../profiles/profile-store.ts'
import type { ClusterProblem, EdgeNativeClusterEntity, ProfileEntity } from '../schemas/clusters.ts'
import type { ClusterStore } from './cluster-store.ts'
import type { Wish } from './examine-wish.ts'
import { namedHost, toConfiguration } from './read-entity.ts'
import { givenIn } from './values.ts'
import type { WantedIndex } from './wanted-index.ts'

export interface WishesOptions {
  readonly store: Pick<ClusterStore, 'hasName'>
  readonly index: Pick<WantedIndex, 'clusterOn'>
  readonly profiles: Pick<Profiles, 'findUsable'>
  readonly findHost: (uid: string) => HostRecord | undefined
  readonly findHostByOwnId: (hostUid: string) => HostRecord | undefined
}

/** Reads what requests wish for; what is wrong with it is a part of the wish. */
export function createWishes({ store, index, profiles, findHost, findHostByOwnId }: WishesOptions) {
  /** The profiles that are named, and what is wrong with them. */
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
          'values of packs are those of the profile; import another version of it, or use variables',
        )
    }
    return { found, problems }
  }

  /** The wish of a creation. @param uid of the cluster */
  function wishOf(entity: EdgeNativeClusterEntity, projectUid: string, uid: string): Wish {
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
        ...{ code: 'ClusterExists', severity: 'error', path: 'metadata.name' },
        message: `there is a cluster named ${metadata.name} in this scope`,
      })
    return {
      ...{ uid, projectUid, name: metadata.name, number: 1, host, problems, profiles: found },
      configuration: toConfiguration(entity, host?.hostUid ?? ''),
      given: givenIn(entities),
    }
  }

  function hostProblems(host: HostRecord | undefined): ClusterProblem[] {
    const path = 'spec.machinepoolconfig[0].cloudConfig.edgeHosts[0].hostUid'
    const problem = (code: string, severity: 'error' | 'warning', message: string): ClusterProblem => ({
      ...{ code, severity, path, message },
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

  return { wishOf, findProfiles }
}
