import { isUnset } from '../../base/field-stance.ts'
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

/** What a host is told of the cluster, but for its definition and its variables. Pure. @param hostUid the id that the host gives itself; empty where no host is known */
export function toConfiguration({ metadata, spec }: EdgeNativeClusterEntity, hostUid: string): Configuration {
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
        // Compared with what the host has.
        ...(nic && !isUnset({ ...nic, nicName: '' }) ? { nic } : {}),
        ...(staticIP === '' ? {} : { staticIP }),
        ...(twoNodeCandidatePriority === '' ? {} : { twoNodeCandidatePriority }),
      },
    ],
  }
}
