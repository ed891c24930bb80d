import type { Profile } from '../definition.ts'
import { holdsInfrastructure } from './composition.ts'

/** Facts of the cluster; one that is missing is not known yet. */
export interface SystemFacts {
  readonly clusterName?: string
  readonly clusterUid?: string
  readonly clusterKubevip?: string
  readonly kubernetesVersion?: string
}

/** What `.spectro.system.NAME` stands for. */
export type SystemValue =
  | { readonly by: 'host'; readonly text: string | undefined }
  /** Only the platform can say it. */
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
 * The system macros that the platform publishes, each with what this host knows of it: the cluster's facts, and what the
 * definition says of its profiles.
 */
export function createSystemMacros(facts: SystemFacts, profiles: readonly Profile[]) {
  const infrastructure = profiles.find(holdsInfrastructure)
  const ofCluster = new Map<string, string | undefined>([
    ['cluster.name', facts.clusterName],
    ['cluster.uid', facts.clusterUid],
    ['cluster.kubevip', facts.clusterKubevip],
    ['kubernetes.version', facts.kubernetesVersion],
    // What profiles of edge hosts call it in spec.template.cloudType.
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

  /** In a text of a profile; undefined: no such macro is published. */
  const find = (profile: Profile, name: string): SystemValue | undefined => {
    if (ofCluster.has(name)) return { by: 'host', text: ofCluster.get(name) }
    const tell = ofProfile.get(name)
    if (tell) return { by: 'host', text: tell(profile) }
    return platform.has(name) ? { by: 'platform' } : undefined
  }
  return { names, find }
}
