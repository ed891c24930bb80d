import type { Profile } from '../definition.ts'
import { hasInfrastructure } from './composition.ts'

/** Facts of the cluster; one that is missing is not known yet. */
export interface SystemFacts {
  readonly clusterName?: string
  readonly clusterUid?: string
  readonly clusterKubevip?: string
  readonly kubernetesVersion?: string
}

/** The value of `.spectro.system.NAME`. */
export type SystemValue =
  | { readonly by: 'host'; readonly text: string | undefined }
  /** Only the platform knows it. */
  | { readonly by: 'platform' }

const ofPlatform = [
  'user.name',
  'user.uid',
  'user.email',
  'tenant.uid',
  'project.name',
  'project.uid',
  'cloudaccount.name',
  'cloudaccount.uid',
  'reverseproxy.server',
  'reverseproxy.port',
  'reverseproxy.protocol',
  'reverseproxy.vhostport',
  'cloud.region',
]

/**
 * The system macros that the platform documents, with the values that this host knows: facts of the cluster, and names and
 * versions of the profiles.
 */
export function createSystemMacros(facts: SystemFacts, profiles: readonly Profile[]) {
  const infrastructure = profiles.find(hasInfrastructure)
  const ofCluster = new Map<string, string | undefined>([
    ['cluster.name', facts.clusterName],
    ['cluster.uid', facts.clusterUid],
    ['cluster.kubevip', facts.clusterKubevip],
    ['kubernetes.version', facts.kubernetesVersion],
    // The value of spec.template.cloudType in profiles of edge hosts.
    ['cloud.type', 'edge-native'],
    ['clusterprofile.infra.name', infrastructure?.name],
    ['clusterprofile.infra.uid', infrastructure?.uid],
    ['clusterprofile.infra.version', infrastructure?.version],
  ])
  const ofProfile = new Map<string, (profile: Profile) => string>([
    ['clusterprofile.name', ({ name }) => name],
    ['clusterprofile.uid', ({ uid }) => uid],
    ['clusterprofile.version', ({ version }) => version],
  ])
  const platform = new Set(ofPlatform)
  const names = [...ofCluster.keys(), ...ofProfile.keys(), ...ofPlatform]

  /** Finds the value for a text of a profile. @returns undefined if there is no such macro */
  const find = (profile: Profile, name: string): SystemValue | undefined => {
    if (ofCluster.has(name)) return { by: 'host', text: ofCluster.get(name) }
    const read = ofProfile.get(name)
    if (read) return { by: 'host', text: read(profile) }
    return platform.has(name) ? { by: 'platform' } : undefined
  }
  return { names, find }
}
