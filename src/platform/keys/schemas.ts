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

const KeyExpiry = Expiry('End of the key; at most ten years ahead.')

const KeyMetadata = Type.Object({
  name: ResourceName,
  labels: Type.Optional(LabelsEntity),
  annotations: Type.Optional(AnnotationsEntity),
  uid: Type.Optional(Type.String({ maxLength: 64, description: 'Cannot be changed.' })),
  creationTimestamp: Type.Optional(Type.String({ maxLength: 64, description: 'Cannot be changed.' })),
  ...timesOfReply,
})

export const ApiKeyEntity = Type.Object({
  metadata: KeyMetadata,
  spec: Type.Object({
    expiry: KeyExpiry,
    userUid: Type.Optional(Uid),
  }),
  status: Type.Optional(Type.Unknown({ description: 'Cannot be changed.' })),
})
export type ApiKeyEntity = Static<typeof ApiKeyEntity>

export const ApiKeyUpdate = Type.Object({
  metadata: Type.Optional(Type.Partial(KeyMetadata)),
  spec: Type.Optional(Type.Object({ expiry: Type.Optional(KeyExpiry) })),
  status: Type.Optional(Type.Unknown({ description: 'Cannot be changed.' })),
})
export type ApiKeyUpdate = Static<typeof ApiKeyUpdate>

export const ApiKeyActiveState = Type.Object({ isActive: Type.Boolean() })

export const ApiKeyCreated = Type.Object(
  { apiKey: Type.String({ description: 'The key; it is shown only here.' }), uid: Type.String() },
  { title: 'ApiKeyCreateResponse' },
)

export const ApiKey = Type.Object(
  {
    metadata: ObjectMeta,
    spec: Type.Object({
      expiry: Type.String({ format: 'date-time' }),
      key: Type.String({ description: 'Its first eight characters.' }),
      user: Type.Object({ firstName: Type.String(), lastName: Type.String(), uid: Type.String() }),
    }),
    status: Type.Object({
      isActive: Type.Boolean(),
      lastUsed: Type.Optional(Type.String({ format: 'date-time', description: 'To the minute.' })),
    }),
  },
  { title: 'ApiKey' },
)
export type ApiKey = Static<typeof ApiKey>
