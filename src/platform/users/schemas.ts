import { Type, type Static } from 'typebox'
import { ignored, refused, setByPlatform } from '../../base/field-stance.ts'
import { AnnotationsEntity, LabelsEntity, ObjectMeta, timesOfReply } from '../schemas.ts'

/** The roles of the platform; their uids are their names. */
export const RoleUid = Type.Enum(['admin', 'operator', 'viewer'], {
  description: 'viewer reads, operator does the daily work, admin does everything.',
})

/** RFC 5321 allows more than any plant uses; characters that a terminal cannot show are refused. */
export const EmailAddress = Type.String({
  pattern: "^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]{0,188}[A-Za-z0-9])?$",
  accepts: 'an e-mail address, for example you@plant.example',
})

const PersonName = Type.String({
  maxLength: 64,
  pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]*$',
  accepts: 'at most 64 characters without control characters',
})

/** A new password. */
export const NewPassword = Type.String({
  minLength: 12,
  maxLength: 256,
  description:
    'At least 12 characters; not the name or address of the user, and not one character over and over.',
})

export const UserEntity = Type.Object({
  metadata: Type.Optional(
    Type.Object({
      labels: Type.Optional(LabelsEntity),
      annotations: Type.Optional(AnnotationsEntity),
      creationTimestamp: Type.Optional(Type.Unknown(setByPlatform)),
      name: Type.Optional(Type.Unknown(ignored('the e-mail address is the name'))),
      uid: Type.Optional(Type.Unknown(setByPlatform)),
      ...timesOfReply,
    }),
  ),
  spec: Type.Object({
    emailId: EmailAddress,
    firstName: Type.Optional(PersonName),
    lastName: Type.Optional(PersonName),
    loginMode: Type.Optional(Type.String(refused('users sign in with their password alone'))),
    teams: Type.Optional(Type.Array(Type.String(), refused('roles are given to users, in spec.roles'))),
    roles: Type.Optional(
      Type.Array(RoleUid, {
        maxItems: 3,
        description: 'Roles for the tenant, which count in every project too.',
      }),
    ),
  }),
})
export type UserEntity = Static<typeof UserEntity>

export const UserRoleUids = Type.Object({ roles: Type.Array(RoleUid, { maxItems: 3 }) })

export const User = Type.Object(
  {
    metadata: ObjectMeta,
    spec: Type.Object({
      emailId: Type.String(),
      firstName: Type.String(),
      lastName: Type.String(),
      roles: Type.Array(RoleUid),
    }),
    status: Type.Object({
      activationLink: Type.Optional(
        Type.String({
          description:
            'For administrators, once, for a day: PATCH it with a password. It is a secret until it is used.',
        }),
      ),
      isActive: Type.Boolean({ description: 'Whether the user has set a password.' }),
      isPasswordResetting: Type.Boolean({ description: 'Whether the user asked for a new link.' }),
      lastSignIn: Type.Optional(Type.String({ format: 'date-time' })),
    }),
  },
  { title: 'User' },
)
export type User = Static<typeof User>

export const ActivationLink = Type.Object({ activationLink: Type.String() })

export const UserInfo = Type.Object(
  {
    orgName: Type.String(),
    tenantUid: Type.String(),
    userUid: Type.String(),
    emailId: Type.String({ description: 'E-mail address of the user; root for the local socket.' }),
    roles: Type.Array(RoleUid, {
      description: 'Roles for the tenant, which count in every project too; a project names those in it.',
    }),
  },
  { title: 'UserInfo' },
)
export type UserInfo = Static<typeof UserInfo>

export const AuthLogin = Type.Object({
  emailId: Type.String({ maxLength: 254 }),
  password: Type.String({ maxLength: 256 }),
  org: Type.Optional(
    Type.String({ maxLength: 64, description: 'There is one tenant, so it has no effect.' }),
  ),
})

export const UserToken = Type.Object(
  {
    Authorization: Type.String({ description: 'Valid for 15 minutes; in the header of the same name.' }),
    isMfa: Type.Boolean(),
  },
  { title: 'UserToken' },
)

export const AuthTokenRevoke = Type.Object({
  tokens: Type.Array(Type.String({ maxLength: 2_048 }), { minItems: 1, maxItems: 50 }),
})

export const PasswordActivation = Type.Object({ password: NewPassword })
export const PasswordReset = Type.Object({ emailId: Type.String({ maxLength: 254 }) })
export const PasswordChange = Type.Object({
  emailId: Type.String({ maxLength: 254 }),
  currentPassword: Type.String({ maxLength: 256 }),
  newPassword: NewPassword,
})
