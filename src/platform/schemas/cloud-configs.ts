import { Type, type Static } from 'typebox'
import { Uid } from '../../base/uid.ts'
import { NewMetadata } from './cloud-accounts.ts'
import { ClusterCondition } from './cluster-reports.ts'
import { EdgeNativeClusterConfig, poolFields } from './clusters.ts'
import { ObjectMeta, ResourceName } from './metadata.ts'

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

const VendorMachinePool = Type.Object(
  {
    name: ResourceName,
    tags: Type.Array(
      Type.String({
        // As Nova bounds them; a filter separates them by commas.
        pattern: '^[^,/\\x00-\\x1f\\x7f]{1,60}$',
        accepts: 'at most 60 characters, without commas, slashes and control characters',
      }),
      {
        ...{ minItems: 1, maxItems: 50, uniqueItems: true },
        description: 'A server that has all of these tags is a machine of the pool.',
      },
    ),
  },
  { title: 'VendorMachinePool' },
)
export type VendorMachinePool = Static<typeof VendorMachinePool>

/** A cloud configuration in the body of its creation. */
export const VendorCloudConfigEntity = Type.Object(
  {
    metadata: NewMetadata,
    spec: Type.Object({
      cloudAccountRef: Type.Object(
        { uid: Uid },
        { description: 'An account of the scope, or of the tenant.' },
      ),
      machinePoolConfig: Type.Array(VendorMachinePool, { minItems: 1, maxItems: 100 }),
    }),
  },
  { title: 'VendorCloudConfigEntity' },
)
export type VendorCloudConfigEntity = Static<typeof VendorCloudConfigEntity>

/** A cloud configuration in replies. */
export const VendorCloudConfig = Type.Object(
  {
    apiVersion: Type.Literal('v1'),
    kind: Type.Literal('VendorCloudConfig'),
    metadata: ObjectMeta,
    spec: Type.Object({
      cloudAccountRef: Type.Object({
        kind: Type.Literal('VendorAccount'),
        name: Type.String(),
        uid: Type.String(),
      }),
      machinePoolConfig: Type.Array(VendorMachinePool),
    }),
    status: Type.Object({}),
  },
  { title: 'VendorCloudConfig' },
)
export type VendorCloudConfig = Static<typeof VendorCloudConfig>
