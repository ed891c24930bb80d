import { Type, type Static } from 'typebox'
import { Uid } from '../../base/uid.ts'
import { ignored } from '../../base/field-stance.ts'
import { Expiry, timesOfReply } from '../schemas.ts'

// Wire types of events, used by the platform and by the hosts that connect to it.

const noMetadata = ignored('an event is known by its uid')
const severities = ['Normal', 'Warning', 'Error'] as const
const text = (maxLength: number) => Type.Optional(Type.String({ maxLength }))
const involvedObject = { kind: text(64), name: text(256), uid: text(64) }

/** An event in the report of a host. */
export const EventEntity = Type.Object({
  involvedObject: Type.Optional(Type.Object(involvedObject)),
  message: Type.String({ maxLength: 2_048 }),
  metadata: Type.Object({
    creationTimestamp: Expiry('Time of the event, by the clock of the host.'),
    uid: Uid,
    annotations: Type.Optional(Type.Unknown(noMetadata)),
    labels: Type.Optional(Type.Unknown(noMetadata)),
    name: Type.Optional(Type.Unknown(noMetadata)),
    ...timesOfReply,
  }),
  reason: Type.String({ minLength: 1, maxLength: 128 }),
  severity: Type.Enum(severities),
  source: Type.Optional(
    Type.Object({
      component: text(64),
      host: Type.Optional(Type.Unknown(ignored('the host that reports is the source'))),
    }),
  ),
})
export type EventEntity = Static<typeof EventEntity>

/** The report of a host: the oldest event first. */
export const BulkEvents = Type.Array(EventEntity, { minItems: 1, maxItems: 500 })

/** An event in replies. */
export const Event = Type.Object(
  {
    involvedObject: Type.Object({ kind: Type.String(), name: Type.String(), uid: Type.String() }),
    message: Type.String(),
    metadata: Type.Object({
      creationTimestamp: Type.String({
        format: 'date-time',
        description: 'Time of the event, by the clock of the host.',
      }),
      number: Type.Integer({ description: 'In the order in which the platform received the events.' }),
      receivedTimestamp: Type.String({ format: 'date-time' }),
      uid: Type.String({ description: 'Given by the host.' }),
    }),
    reason: Type.String(),
    severity: Type.Enum(severities),
    source: Type.Object({
      component: Type.String(),
      host: Type.String({ description: 'Name of the host.' }),
      hostUid: Type.String(),
    }),
  },
  { title: 'Event' },
)
export type Event = Static<typeof Event>
