import { Type, type Static } from 'typebox'
import { ObjectMeta } from './metadata.ts'

// Wire types of machines, as the published API spells them.

const maybe = (description: string) => Type.Optional(Type.String({ description }))

export const instanceStates = [
  ...['Pending', 'Provisioning', 'Provisioned', 'Running', 'Deleting', 'Deleted', 'Failed', 'Unknown'],
] as const

/** A machine of a pool: a host, or a server of a cloud. */
export const Machine = Type.Object(
  {
    apiVersion: Type.Literal('v1'),
    kind: Type.Literal('Machine'),
    metadata: ObjectMeta,
    spec: Type.Object({
      dnsName: maybe('Name of the node, where one was given.'),
      imageId: Type.String({
        description: 'Empty for a host, and for a server that was booted from a volume.',
      }),
      instanceType: Type.String({
        description: 'Of a host its architecture, of a server its flavor; empty where it is not known.',
      }),
      nics: Type.Array(
        Type.Object({
          index: Type.Integer({ minimum: 0, maximum: 127 }),
          privateIPs: Type.Array(Type.String()),
          publicIp: maybe('The floating address of a server, if it has one.'),
        }),
      ),
      securityGroups: Type.Optional(
        Type.Array(Type.String(), { description: 'Of a server: the names of its security groups.' }),
      ),
      subnetId: maybe('Of a server: the subnet of its first network card.'),
      type: maybe('edge-native for a host, vendorke for a server.'),
      vpcId: maybe('Of a server: the network of its first network card.'),
      zoneId: maybe('Of a server: its availability zone.'),
    }),
    status: Type.Object({
      health: Type.Object({
        conditions: Type.Array(
          Type.Object({
            message: Type.String(),
            reason: Type.String(),
            status: Type.String(),
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
    }),
  },
  { title: 'Machine' },
)
export type Machine = Static<typeof Machine>
export type MachineCondition = Machine['status']['health']['conditions'][number]
