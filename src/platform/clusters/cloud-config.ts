import { formatTime } from '../../base/time.ts'
import { usualPoolName } from '../../cluster/configuration/read-configuration.ts'
import type { HostRecord } from '../hosts/host-store.ts'
import type { EdgeNativeCloudConfig } from '../schemas/cloud-configs.ts'
import type { ClusterRecord } from './cluster-store.ts'

/** The name of the only pool of a cluster. Pure. */
export function poolNameOf({ configuration }: Pick<ClusterRecord, 'configuration'>): string {
  const [{ name = '' }] = configuration.spec.cloudConfig.spec.machinePoolConfig
  return name || usualPoolName
}

/** The cloud configuration of a cluster in the API; it has the uid of the cluster. Pure. @param host undefined where it is not known any more */
export function toCloudConfig(cluster: ClusterRecord, host: HostRecord | undefined): EdgeNativeCloudConfig {
  const { uid, name, labels, annotations, conditions, configuration, hostUid } = cluster
  const { clusterConfig, machinePoolConfig } = configuration.spec.cloudConfig.spec
  const [{ hosts, ...pool }] = machinePoolConfig
  const [{ hostName, nicName }] = hosts
  return {
    metadata: {
      ...{ annotations: { ...annotations }, labels: { ...labels }, name, uid },
      creationTimestamp: formatTime(cluster.createdAt),
      lastModifiedTimestamp: formatTime(cluster.modifiedAt),
    },
    spec: {
      clusterConfig,
      machinePoolConfig: [
        {
          ...pool,
          name: poolNameOf(cluster),
          hosts: [
            {
              ...{ hostAddress: host?.reported.hostAddress ?? '', hostUid },
              ...(hostName === undefined ? {} : { hostName }),
              ...(nicName === undefined ? {} : { nicName }),
            },
          ],
        },
      ],
    },
    status: { conditions: [...conditions] },
  }
}
