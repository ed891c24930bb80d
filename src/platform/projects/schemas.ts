import { Type, type Static } from 'typebox'
import { ignored, refused } from '../../base/field-stance.ts'
import { Uid } from '../../base/uid.ts'
import { AnnotationsEntity, LabelsEntity, ObjectMeta, ResourceName, timesOfReply } from '../schemas.ts'
import { RoleUid } from '../users/schemas.ts'

/** Roles of a user in one project. */
export const UserRoleMap = Type.Object({
  roles: Type.Array(RoleUid, { minItems: 1, maxItems: 3 }),
  userId: Uid,
})
export type UserRoleMap = Static<typeof UserRoleMap>

const threshold = Type.Optional(
  Type.Integer(ignored('it concerns the resources of a project, which are deleted before it')),
)

/** Body of a deletion; there may be none. */
export const ProjectCleanup = Type.Union([
  Type.Object({
    deletingClusterDurationThresholdInMin: threshold,
    provisioningClusterDurationThresholdInMin: threshold,
  }),
  Type.Null(),
])

export const ProjectEntity = Type.Object({
  metadata: Type.Object({
    name: ResourceName,
    labels: Type.Optional(LabelsEntity),
    annotations: Type.Optional(AnnotationsEntity),
    uid: Type.Optional(Type.String({ maxLength: 64, description: 'Cannot be changed.' })),
    creationTimestamp: Type.Optional(Type.String({ maxLength: 64, description: 'Cannot be changed.' })),
    ...timesOfReply,
  }),
  spec: Type.Optional(
    Type.Object({
      logoUid: Type.Optional(Type.String(refused('projects have no logos'))),
      // As replies of the published API have it.
      logoUrl: Type.Optional(Type.String(refused('projects have no logos'))),
      users: Type.Optional(
        Type.Array(UserRoleMap, {
          maxItems: 1_000,
          description: 'Users with roles in this project; a role for the tenant counts here too.',
        }),
      ),
    }),
  ),
  status: Type.Optional(Type.Unknown({ description: 'Cannot be changed.' })),
})
export type ProjectEntity = Static<typeof ProjectEntity>

export const Project = Type.Object(
  {
    metadata: ObjectMeta,
    spec: Type.Object({ users: Type.Array(UserRoleMap) }),
    status: Type.Object({ isDisabled: Type.Boolean() }),
  },
  { title: 'Project' },
)
export type Project = Static<typeof Project>
