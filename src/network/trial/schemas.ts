import { Type, type Static } from 'typebox'

/** States of a change, and what may follow: docs/network.md. */
export const changeStates = [
  'applying',
  'trial',
  'confirming',
  'confirmed',
  'reverting',
  'reverted',
  'revertFailed',
] as const

/** Why a change was taken back. */
export const revertReasons = ['asked', 'deadline', 'failed', 'reboot'] as const

export const NetworkChange = Type.Object(
  {
    uid: Type.String({ description: 'A UUID.' }),
    summary: Type.String({ description: 'What it changes, for example eth1: address 192.0.2.9/24.' }),
    state: Type.Enum([...changeStates], {
      description:
        'trial: it is applied, and is taken back at deadlineTimestamp unless it is confirmed. revertFailed: it was taken back, but the network is not as before; message says what differs.',
    }),
    reason: Type.Optional(
      Type.Enum([...revertReasons], {
        description:
          'Why it was taken back. failed: without carrier, address or an answer of the gateway; message says which. reboot: the host was started again before it was confirmed.',
      }),
    ),
    message: Type.Optional(Type.String()),
    backend: Type.Enum(['networkd', 'netplan', 'networkmanager', 'ifupdown'], {
      description: 'What owns the links.',
    }),
    links: Type.Array(Type.String(), { description: 'The links that it touches.' }),
    lost: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'Addresses and routes that something else had put on the links, and that the network as it is in the trial cannot have.',
      }),
    ),
    requestedBy: Type.String({ description: 'Account of the user.' }),
    needsNewWay: Type.Boolean({
      description:
        'Whether it touches the way by which it was asked for: it is then confirmed on a new TLS connection to an address that the host has now.',
    }),
    windowSeconds: Type.Integer({ description: 'Time from the request to the deadline.' }),
    creationTimestamp: Type.String({ format: 'date-time' }),
    deadlineTimestamp: Type.String({ format: 'date-time' }),
    appliedTimestamp: Type.Optional(
      Type.String({
        format: 'date-time',
        description: 'Connections that are accepted later may confirm it.',
      }),
    ),
    endTimestamp: Type.Optional(Type.String({ format: 'date-time' })),
  },
  { title: 'NetworkChange' },
)
export type NetworkChange = Static<typeof NetworkChange>
