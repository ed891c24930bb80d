import type { HostRecord } from '../hosts/host-store.ts'
import type { ClusterProblem, EdgeNativeClusterEntity } from '../schemas/clusters.ts'
import type { Configuration, Pool } from './cluster-store.ts'

type Spec = EdgeNativeClusterEntity['spec']
type PoolEntity = NonNullable<Spec['machinepoolconfig']>[number]

const hostsPath = 'spec.machinepoolconfig[0].cloudConfig.edgeHosts'

/** The one host that is named for a cluster, or why it is not one. Pure. */
export function namedHost({ machinepoolconfig: pools = [] }: Spec): string | ClusterProblem {
  const hosts = pools.flatMap(({ cloudConfig }) => cloudConfig?.edgeHosts ?? [])
  const [host] = hosts
  if (host && hosts.length === 1 && pools.length === 1) return host.hostUid
  const found =
    hosts.length === 0 ? 'no host is named' : `${hosts.length} hosts in ${pools.length} pools are named`
  return {
    ...{ code: 'NeedsOneHost', severity: 'error', path: hostsPath },
    message: `a cluster has exactly one host, in one pool; ${found}`,
  }
}

/** What a host is told of the cluster, but for its definition and its variables. Pure. */
export function toConfiguration(
  { metadata, spec }: EdgeNativeClusterEntity,
  host: HostRecord,
): Configuration {
  const [pool] = spec.machinepoolconfig ?? []
  const { name, labels } = metadata
  return {
    metadata: { name, ...(labels ? { labels } : {}) },
    spec: {
      cloudConfig: {
        spec: {
          clusterConfig: spec.cloudConfig ?? {},
          machinePoolConfig: [toPool(pool ?? {}, host)],
        },
      },
    },
  }
}

function toPool({ poolConfig = {}, cloudConfig }: PoolEntity, { hostUid }: HostRecord): Pool {
  const [named] = cloudConfig?.edgeHosts ?? []
  const { hostName = '', nic, nicName = '', twoNodeCandidatePriority = '' } = named ?? {}
  const interfaceName = nicName || nic?.nicName || ''
  return {
    ...poolConfig,
    hosts: [
      {
        hostUid,
        ...(hostName === '' ? {} : { hostName }),
        ...(interfaceName === '' ? {} : { nicName: interfaceName }),
        ...(twoNodeCandidatePriority === '' ? {} : { twoNodeCandidatePriority }),
      },
    ],
  }
}
