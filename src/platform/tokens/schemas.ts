import { Type, type Static } from 'typebox'
import { Uid } from '../../base/uid.ts'
import {
  AnnotationsEntity,
  Expiry,
  LabelsEntity,
  ObjectMeta,
  ResourceName,
  timesOfReply,
} from '../schemas.ts'

const TokenMetadata = Type.Object({
  name: ResourceName,
  labels: Type.Optional(LabelsEntity),
  annotations: Type.Optional(AnnotationsEntity),
  uid: Type.Optional(Type.String({ maxLength: 64, description: 'Cannot be changed.' })),
  creationTimestamp: Type.Optional(Type.String({ maxLength: 64, description: 'Cannot be changed.' })),
  ...timesOfReply,
})

const MaximumHosts = Type.Optional(
  Type.Integer({
    minimum: 0,
    maximum: 1_000_000,
    description: 'Number of hosts that may use it; 0 is any.',
  }),
)
const ProjectUid = Type.Optional(
  Type.Union([Uid, Type.Literal('')], {
    description: 'Project of the hosts; empty is the tenant itself.',
  }),
)
// A token for hosts of the tenant is not what a client means that sends the project in the field of replies.
const ProjectOfReply = Type.Optional(
  Type.Object(
    { uid: Type.Optional(Type.String({ maxLength: 64 })) },
    { description: 'As replies have it; spec.defaultProjectUid names another project.' },
  ),
)

export const EdgeTokenEntity = Type.Object({
  metadata: TokenMetadata,
  spec: Type.Optional(
    Type.Object({
      defaultProjectUid: ProjectUid,
      defaultProject: ProjectOfReply,
      expiry: Type.Optional(Expiry('End of the token; in seven days by default, at most ten years ahead.')),
      maximumHosts: MaximumHosts,
    }),
  ),
  status: Type.Optional(Type.Unknown({ description: 'Cannot be changed.' })),
})
export type EdgeTokenEntity = Static<typeof EdgeTokenEntity>

export const EdgeTokenUpdate = Type.Object({
  metadata: Type.Optional(Type.Partial(TokenMetadata)),
  spec: Type.Optional(
    Type.Object({
      defaultProjectUid: ProjectUid,
      defaultProject: ProjectOfReply,
      expiry: Type.Optional(Expiry('End of the token; at most ten years ahead.')),
      maximumHosts: MaximumHosts,
    }),
  ),
  status: Type.Optional(Type.Unknown({ description: 'Cannot be changed.' })),
})
export type EdgeTokenUpdate = Static<typeof EdgeTokenUpdate>

export const EdgeTokenActiveState = Type.Object({ isActive: Type.Boolean() })

export const EdgeTokenCreated = Type.Object(
  { token: Type.String({ description: 'The token; it is shown only here.' }), uid: Type.String() },
  { title: 'EdgeTokenCreated' },
)

export const EdgeToken = Type.Object(
  {
    metadata: ObjectMeta,
    spec: Type.Object({
      defaultProject: Type.Optional(Type.Object({ name: Type.String(), uid: Type.String() })),
      expiry: Type.String({ format: 'date-time' }),
      maximumHosts: Type.Integer({ description: '0 is any number.' }),
      token: Type.String({ description: 'Its first eight characters.' }),
    }),
    status: Type.Object({
      hosts: Type.Integer({ description: 'Hosts that were registered with it.' }),
      isActive: Type.Boolean(),
    }),
  },
  { title: 'EdgeToken' },
)
export type EdgeToken = Static<typeof EdgeToken>
