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
      imageId: Type.String({ description: 'Empty for a host.' }),
      instanceType: Type.String({ description: 'Of a host its architecture; empty where it is not known.' }),
      nics: Type.Array(
        Type.Object({
          index: Type.Integer({ minimum: 0, maximum: 127 }),
          privateIPs: Type.Array(Type.String()),
          publicIp: maybe('Absent for a host.'),
        }),
      ),
      type: maybe('edge-native for a host.'),
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
        state: Type.String({ description: 'healthy or unhealthy; empty before the first heartbeat.' }),
      }),
      instanceState: Type.Enum([...instanceStates], {
        description: 'Unknown: the host is not heard. Provisioned does not occur with hosts.',
      }),
    }),
  },
  { title: 'Machine' },
)
export type Machine = Static<typeof Machine>
