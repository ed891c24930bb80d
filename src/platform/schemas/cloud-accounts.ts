import { Type, type Static } from 'typebox'
import { AnnotationsEntity, LabelsEntity, ObjectMeta, ResourceName } from './metadata.ts'

// Wire types of accounts of a cloud, as the published API spells them.

const fields = {
  secretId: Type.String({
    minLength: 1,
    maxLength: 255,
    description: 'Id of an application credential of the cloud.',
  }),
  secretKey: Type.String({ minLength: 1, maxLength: 1_024, description: 'Its secret.' }),
}

/** Credentials of a cloud in a request. */
export const VendorAccountCredentials = Type.Object(fields, { title: 'VendorAccountCredentials' })
export type VendorAccountCredentials = Static<typeof VendorAccountCredentials>

/** What a request says of a new resource of clouds, besides its spec. */
export const NewMetadata = Type.Object({
  annotations: Type.Optional(AnnotationsEntity),
  labels: Type.Optional(LabelsEntity),
  name: ResourceName,
})

/** An account in the body of its creation. */
export const VendorAccountEntity = Type.Object(
  { metadata: NewMetadata, spec: VendorAccountCredentials },
  { title: 'VendorAccountEntity' },
)
export type VendorAccountEntity = Static<typeof VendorAccountEntity>

/** An account in replies. */
export const VendorAccount = Type.Object(
  {
    apiVersion: Type.Literal('v1'),
    kind: Type.Literal('VendorAccount'),
    metadata: ObjectMeta,
    spec: Type.Object({ ...fields, secretKey: Type.String({ description: 'Masked.' }) }),
    status: Type.Object({}),
  },
  { title: 'VendorAccount' },
)
export type VendorAccount = Static<typeof VendorAccount>
