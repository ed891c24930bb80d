import { Type, type Static } from 'typebox'

// Wire names as the published API spells them.

export const ContentSigningKey = Type.Object(
  {
    key: Type.String({ description: 'The public key that uploads are checked with.' }),
    description: Type.String({ description: 'Description from the configuration; may be empty.' }),
    creationTimestamp: Type.String({ format: 'date-time' }),
  },
  { title: 'ContentSigningKey' },
)
export type ContentSigningKey = Static<typeof ContentSigningKey>
