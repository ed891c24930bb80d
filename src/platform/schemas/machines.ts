import { Type, type Static } from 'typebox'
import { ObjectMeta } from './metadata.ts'

// Wire types of machines, as the published API spells them.

const maybe = (description: string) => Type.Optional(Type.String({ description }))

export const instanceStates = [
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
      'Unknown: the host is not heard, or the cloud does not know. Provisioned: the server is there and does not run; it does not occur with hosts.',
  }),
  maintenanceStatus: Type.Optional(
    Type.Object(
      {
        action: Type.String({ description: 'As Nova calls it, for example REBOOT.' }),
        message: Type.String(),
        state: Type.String({ description: 'The task of Nova at the moment; empty for none.' }),
      },
      { description: 'What is being done with a server that counts as running.' },
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
        { description: 'What is not known is absent.' },
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
