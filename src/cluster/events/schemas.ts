import { Type, type Static } from 'typebox'
import { Condition } from '../schemas.ts'

// Wire names as the published API spells them; number, clusterUid, type, step and count are additions of ours.

const maybe = (description: string) => Type.Optional(Type.String({ description }))

export const Event = Type.Object(
  {
    metadata: Type.Object({
      uid: Type.String({ description: 'Unique in the list.' }),
      name: Type.String(),
      namespace: maybe('Of an event of Kubernetes.'),
      creationTimestamp: Type.String({ format: 'date-time', description: 'Time of its last occurrence.' }),
      number: Type.Integer({
        description:
          'Rises with each event of edgehostd: its id in the event stream. 0 for events of Kubernetes and of the journal.',
      }),
    }),
    involvedObject: Type.Object(
      {
        kind: Type.String(),
        name: maybe('Of the object.'),
        namespace: maybe('Of the object.'),
        uid: maybe('Of the object.'),
        apiVersion: maybe('Of the object.'),
        fieldPath: maybe('The part of the object, for example spec.containers{web}.'),
      },
      { description: 'Its object; kind Cluster is the cluster itself, Unit a unit of systemd.' },
    ),
    relatedObject: Type.Optional(
      Type.Object({
        kind: Type.Enum(['spectrocluster', 'machine', 'cloudconfig', 'clusterprofile', 'pack']),
        name: maybe('Of a pack: profile uid and name.'),
        uid: maybe('Of the cluster.'),
      }),
    ),
    reason: Type.String({ description: 'Stable; reasons of edgehostd are in docs/cluster-events.md.' }),
    message: Type.String(),
    severity: Type.Enum(['Normal', 'Warning', 'Error']),
    source: Type.Object({
      component: Type.String({ description: 'edgehostd, or a component of Kubernetes.' }),
      host: maybe('Name of the host or node.'),
    }),
    clusterUid: maybe('Of an event of edgehostd: its cluster.'),
    type: maybe('Of an event of edgehostd: the type of its condition.'),
    step: maybe('Key of its step, see status.steps of cluster/details.'),
    count: Type.Optional(
      Type.Integer({ description: 'Of an event of Kubernetes: its number of occurrences; absent for one.' }),
    ),
  },
  { title: 'Event' },
)
/** An event in the API. */
export type Event = Static<typeof Event>

export const EventSource = Type.Object(
  {
    state: Type.Enum(['read', 'failed', 'absent'], {
      description: 'absent: there is no Kubernetes yet, or no longer. failed: see message.',
    }),
    message: maybe('Why they could not be read.'),
  },
  {
    title: 'EventSource',
    description:
      "Whether the reply has Kubernetes' own events, which are read from its API server when asked.",
  },
)
export type EventSource = Static<typeof EventSource>

const ConditionOrder = Type.Object({
  order: Type.Integer(),
  type: Type.String(),
  typeLabel: Type.String(),
  reason: Type.String(),
  reasonLabel: Type.String(),
})

export const LifecycleEvents = Type.Object(
  {
    clusterEvents: Type.Array(Condition, {
      description: 'The conditions of the cluster, one a type; of the last cluster where there is none now.',
    }),
    edgeHostEvents: Type.Array(Condition, { description: 'The same for this host.' }),
    expectedOrder: Type.Array(
      Type.Object({
        category: Type.String(),
        order: Type.Integer(),
        conditionsOrder: Type.Array(ConditionOrder),
      }),
      {
        description:
          'Milestones of every cluster until it runs. A condition with the same type and reason shows that one was reached.',
      },
    ),
  },
  { title: 'LifecycleEvents' },
)
export type LifecycleEvents = Static<typeof LifecycleEvents>

export const ErrorLogs = Type.Object(
  { items: Type.Array(Event, { description: 'The newest first.' }) },
  { title: 'ErrorLogs' },
)
