import { Type, type Static } from 'typebox'
import { AnnotationsEntity, LabelsEntity, ObjectMeta, ResourceName } from '../schemas.ts'
import { maybe } from '../../base/field-stance.ts'
import { Uid } from '../../base/uid.ts'
import { ClusterCondition, EdgeNativeClusterConfig, poolFields } from '../clusters/schemas.ts'

// Wire types of accounts of a cloud, as the published API spells them.

const fields = {
  secretId: Type.String({
    minLength: 1,
    maxLength: 255,
    description: 'Id of an application credential of the cloud.',
  }),
  secretKey: Type.String({ minLength: 1, maxLength: 1_024, description: 'Its secret.' }),
}

/** Credentials of a cloud in a request. */
export const VendorAccountCredentials = Type.Object(fields, { title: 'VendorAccountCredentials' })
export type VendorAccountCredentials = Static<typeof VendorAccountCredentials>

/** Metadata of a new resource of clouds in a request. */
const NewMetadata = Type.Object({
  annotations: Type.Optional(AnnotationsEntity),
  labels: Type.Optional(LabelsEntity),
  name: ResourceName,
})

/** An account in the body of its creation. */
export const VendorAccountEntity = Type.Object(
  { metadata: NewMetadata, spec: VendorAccountCredentials },
  { title: 'VendorAccountEntity' },
)
export type VendorAccountEntity = Static<typeof VendorAccountEntity>

/** An account in replies. */
export const VendorAccount = Type.Object(
  {
    apiVersion: Type.Literal('v1'),
    kind: Type.Literal('VendorAccount'),
    metadata: ObjectMeta,
    spec: Type.Object({ ...fields, secretKey: Type.String({ description: 'Masked.' }) }),
    status: Type.Object({}),
  },
  { title: 'VendorAccount' },
)
export type VendorAccount = Static<typeof VendorAccount>

// Wire types of cloud configurations, as the published API spells them.

const text = (description: string) => Type.String({ description })

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
        minItems: 1,
        maxItems: 50,
        uniqueItems: true,
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

// Wire types of machines, as the published API spells them.

const instanceStates = [
  ...['Pending', 'Provisioning', 'Provisioned', 'Running', 'Deleting', 'Deleted', 'Failed', 'Unknown'],
] as const

const Nic = Type.Object({
  index: Type.Integer({ minimum: 0, maximum: 127 }),
  privateIPs: Type.Array(Type.String()),
})

const MachineStatus = Type.Object({
  health: Type.Object({
    conditions: Type.Array(
      Type.Object({
        message: Type.String(),
        reason: Type.String(),
        status: Type.String({ description: 'True, False or Unknown.' }),
        type: Type.String(),
      }),
    ),
    lastHeartBeatTimestamp: Type.Optional(Type.String({ format: 'date-time' })),
    state: Type.String({
      description: 'healthy or unhealthy; empty before the first heartbeat of a host, and for a server.',
    }),
  }),
  instanceState: Type.Enum([...instanceStates], {
    description:
      'Unknown: the host is silent, or the cloud does not know. Provisioned: the server is there and does not run; it does not occur with hosts.',
  }),
  maintenanceStatus: Type.Optional(
    Type.Object(
      {
        action: Type.String({ description: 'As Nova calls it, for example REBOOT.' }),
        message: Type.String(),
        state: Type.String({ description: 'The task of Nova at the moment; empty for none.' }),
      },
      { description: 'Maintenance of a server that counts as running.' },
    ),
  ),
})

/** A server of a cloud as a machine of a pool. */
export const Machine = Type.Object(
  {
    apiVersion: Type.Literal('v1'),
    kind: Type.Literal('Machine'),
    metadata: ObjectMeta,
    spec: Type.Object({
      dnsName: maybe('Not known of a server.'),
      imageId: Type.String({ description: 'Empty for a server that was booted from a volume.' }),
      instanceType: Type.String({ description: 'Its flavor; empty where it is not known.' }),
      nics: Type.Array(
        Type.Object({
          ...Nic.properties,
          publicIp: maybe('The floating address, if it has one.'),
        }),
      ),
      securityGroups: Type.Optional(
        Type.Array(Type.String(), { description: 'The names of its security groups.' }),
      ),
      subnetId: maybe('The subnet of its first network card.'),
      type: maybe('vendorke.'),
      vpcId: maybe('The network of its first network card.'),
      zoneId: maybe('Its availability zone.'),
    }),
    status: MachineStatus,
  },
  { title: 'Machine' },
)
export type Machine = Static<typeof Machine>

const count = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }))

/** A host as a machine of the pool of its cluster. */
export const EdgeNativeMachine = Type.Object(
  {
    ...Machine.properties,
    spec: Type.Object({
      dnsName: maybe('Name of the node, where one was given.'),
      edgeHostUid: Type.String(),
      instanceType: Type.Object(
        {
          diskGiB: count('Of all disks.'),
          memoryMiB: count('As the host reports it.'),
          name: Type.String({ description: 'The architecture; empty where it is not known.' }),
          numCPUs: count('Cores.'),
        },
        { description: 'Unknown values are absent.' },
      ),
      machineMetadata: Type.Object({
        creationTimestamp: Machine.properties.metadata.properties.creationTimestamp,
      }),
      nics: Type.Array(
        Type.Object({
          ...Nic.properties,
          networkName: maybe('Name of the interface.'),
        }),
      ),
      type: Type.Literal('edge-native'),
    }),
    status: Type.Object({
      addresses: Type.Array(
        Type.Object({ address: Type.String(), type: Type.String({ description: 'InternalIP.' }) }),
      ),
      ...MachineStatus.properties,
    }),
  },
  { title: 'EdgeNativeMachine' },
)
export type EdgeNativeMachine = Static<typeof EdgeNativeMachine>
export type MachineCondition = Machine['status']['health']['conditions'][number]
