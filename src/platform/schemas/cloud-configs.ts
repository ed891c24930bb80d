import { Type, type Static } from 'typebox'
import { ClusterCondition, EdgeNativeClusterConfig, poolFields } from './clusters.ts'
import { ObjectMeta } from './metadata.ts'

// Wire types of cloud configurations, as the published API spells them.

const text = (description: string) => Type.String({ description })
const maybe = (description: string) => Type.Optional(Type.String({ description }))

/** The cloud configuration of a cluster on hosts. */
export const EdgeNativeCloudConfig = Type.Object(
  {
    metadata: ObjectMeta,
    spec: Type.Object({
      clusterConfig: EdgeNativeClusterConfig,
      machinePoolConfig: Type.Array(
        Type.Object({
          ...poolFields,
          hosts: Type.Array(
            Type.Object({
              hostAddress: text('As the host reports it; empty where it is not known.'),
              hostName: maybe('Name of the node in Kubernetes, where one was given.'),
              hostUid: text('The uid of the host.'),
              nicName: maybe('Name of the interface for Kubernetes, where one was given.'),
            }),
          ),
        }),
      ),
    }),
    status: Type.Object({ conditions: Type.Array(ClusterCondition) }),
  },
  { title: 'EdgeNativeCloudConfig' },
)
export type EdgeNativeCloudConfig = Static<typeof EdgeNativeCloudConfig>
