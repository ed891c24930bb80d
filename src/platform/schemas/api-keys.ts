import { Type, type Static } from 'typebox'
import { Uid } from '../../base/uid.ts'
import { AnnotationsEntity, LabelsEntity, ObjectMeta } from './metadata.ts'

const Expiry = Type.String({
  pattern: '^\\d{4}-\\d\\d-\\d\\d[Tt]\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?([Zz]|[+-]\\d\\d:\\d\\d)$',
  accepts: 'a time with a time zone as RFC 3339 writes it, for example 2027-01-31T08:00:00Z',
  description: 'When the key ends; at most ten years ahead.',
})

const KeyMetadata = Type.Object({
  name: Type.String({
    pattern: '^[A-Za-z0-9]([A-Za-z0-9 ._-]{0,61}[A-Za-z0-9])?$',
    accepts:
      'at most 63 letters, digits, spaces, dashes, dots and underscores; the first and last a letter or digit',
  }),
  labels: Type.Optional(LabelsEntity),
  annotations: Type.Optional(AnnotationsEntity),
  uid: Type.Optional(Type.String({ maxLength: 64, description: 'Cannot be changed.' })),
  creationTimestamp: Type.Optional(Type.String({ maxLength: 64, description: 'Cannot be changed.' })),
})

export const ApiKeyEntity = Type.Object({
  metadata: KeyMetadata,
  spec: Type.Object({
    expiry: Expiry,
    userUid: Type.Optional(Uid),
  }),
  status: Type.Optional(Type.Unknown({ description: 'Cannot be changed.' })),
})
export type ApiKeyEntity = Static<typeof ApiKeyEntity>

export const ApiKeyUpdate = Type.Object({
  metadata: Type.Optional(Type.Partial(KeyMetadata)),
  spec: Type.Optional(Type.Object({ expiry: Type.Optional(Expiry) })),
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
