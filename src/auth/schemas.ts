import { Type, type Static } from 'typebox'

// Wire names of the published API.

const UserName = Type.String({ minLength: 1, description: 'An operating-system account of the host.' })
const Password = Type.String({ minLength: 1, description: 'The password of the account.' })

export const LoginBody = Type.Object({ username: UserName, password: Password })

export const LoginQuery = Type.Object({
  setCookie: Type.Optional(
    Type.Boolean({
      default: true,
      description: 'Also set the cookies Authorization and RefreshToken.',
    }),
  ),
  extendedSession: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Let the session last 24 hours from its last renewal instead of 2.',
    }),
  ),
})

export const UserToken = Type.Object({
  Authorization: Type.String({ description: 'Access token for the Authorization header.' }),
  RefreshToken: Type.String({ description: 'Valid for one renewal.' }),
})

export const LoginReply = Type.Object({
  Token: UserToken,
  IsFirstLogin: Type.Boolean({ description: "True on the account's first success on this host." }),
})

export const RenewalQuery = Type.Object({ extendedSession: LoginQuery.properties.extendedSession })

/** Without a body the cookie is used. */
export const RenewalBody = Type.Union([
  Type.Object({ refreshToken: Type.Optional(Type.String()) }),
  Type.Null(),
])

export const PasswordResetBody = Type.Object({
  username: Type.Optional(
    Type.String({ description: 'Instead of a token, for an account whose password has expired.' }),
  ),
  oldPassword: Type.String({ minLength: 1 }),
  newPassword: Type.String({ minLength: 1 }),
})

export const CurrentUser = Type.Object({
  userName: Type.String(),
  role: Type.Union([Type.Literal('admin'), Type.Literal('viewer')]),
  disablePasswordUpdate: Type.Boolean(),
  sshKeys: Type.Array(Type.String(), {
    description:
      'Keys that this user has set here. The host may have more: those of its administrator, and the sshKeys of the settings of its cluster.',
  }),
})

export const UserSpec = Type.Object({
  sshKeys: Type.Optional(
    Type.Array(Type.String(), {
      description:
        'Public keys of OpenSSH, without options, in place of those that were set here before; an empty list removes them.',
    }),
  ),
  userName: Type.Optional(Type.String({ description: 'The own name, or absent: it cannot be changed.' })),
  disablePasswordUpdate: Type.Optional(
    Type.Boolean({ description: 'false, or absent: PAM decides who changes a password.' }),
  ),
  password: Type.Optional(
    Type.String({ description: 'The password of the account, where the login is older than five minutes.' }),
  ),
})

const Timestamp = Type.String({ format: 'date-time' })

export const SessionItem = Type.Object({
  uid: Type.String(),
  userName: Type.String(),
  role: CurrentUser.properties.role,
  address: Type.String({ description: 'Address of the login.' }),
  creationTimestamp: Timestamp,
  lastRenewalTimestamp: Timestamp,
  expirationTimestamp: Timestamp,
  isCurrent: Type.Boolean({ description: 'The session of this request.' }),
})
/** A session in the API; times are RFC 3339. */
export type SessionItem = Static<typeof SessionItem>
