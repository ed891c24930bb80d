import { clientOfAddress } from '../../base/client.ts'
import type { Ground } from '../../root/room.ts'
import { type Role, isAtLeast } from '../../base/role.ts'
import { formatTime } from '../../base/time.ts'
import { uuidAt } from '../../base/uid.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { Clock } from '../../system/clock.ts'
import { platformErrors } from '../codes.ts'
import type { User, UserEntity } from './schemas.ts'
import type { CallerChanges } from '../requests/changes.ts'
import {
  type PasswordLinks,
  createPasswordLinks,
  createSignIn,
  type SignIn,
  createUserTokens,
  sessionOf,
} from './sign-in.ts'
import { type UserRecord, type UserStore, createUserStore } from './store.ts'
import { createSecretKey } from 'node:crypto'
import type { GuessLimits } from '../../credentials/config.ts'
import { createGuessGuard } from '../../credentials/guess-guard.ts'
import { createGuessStore } from '../../credentials/guess-store.ts'
import { createPasswordHashes, type HashCost } from '../../credentials/password-hash.ts'
import type { Job } from '../../root/room.ts'

interface UsersOptions {
  readonly store: UserStore
  readonly links: PasswordLinks
  readonly transaction: <T>(work: () => T) => T
  readonly changes: CallerChanges
  readonly clock: Clock
}

/** The users of the tenant, as an administrator sees and changes them. */
export interface Users {
  /** @throws AppError UserExists */
  create(entity: UserEntity): string
  all(): readonly UserRecord[]
  /** @throws AppError NotFound */
  get(uid: string): UserRecord
  /** @throws AppError NotFound, LastAdministrator */
  remove(uid: string): void
  /** Sets the roles for the tenant. @throws AppError NotFound, LastAdministrator */
  setRoles(uid: string, roles: readonly Role[]): void
  /** Hands out a new link to set a password; the password stays until it is used. @throws AppError NotFound */
  renewLink(uid: string): string
}

function createUsers({ store, links, transaction, changes, clock }: UsersOptions): Users {
  function get(uid: string): UserRecord {
    const found = store.find(uid)
    if (!found) throw new AppError(generalErrors.NotFound, 'there is no user with this uid')
    return found
  }

  function keepAnAdministrator(user: UserRecord): void {
    if (user.roles.includes('admin') && store.otherAdministrators(user.uid) === 0)
      throw new AppError(
        platformErrors.LastAdministrator,
        `${user.email} is the only administrator; make another user an administrator first`,
      )
  }

  return {
    all: store.all,
    get,
    create({ metadata = {}, spec }) {
      const { emailId, firstName = '', lastName = '', roles = [] } = spec
      const now = clock.now()
      const uid = uuidAt(now)
      transaction(() => {
        if (store.findByEmail(emailId))
          throw new AppError(
            platformErrors.UserExists,
            `there is a user with the e-mail address ${emailId}`,
            {
              details: { field: 'spec.emailId' },
            },
          )
        store.create({
          uid,
          email: emailId,
          firstName,
          lastName,
          roles,
          createdAt: now,
          labels: metadata.labels ?? {},
          annotations: metadata.annotations ?? {},
        })
        links.make(uid)
      })
      return uid
    },
    remove(uid) {
      transaction(() => {
        keepAnAdministrator(get(uid))
        store.remove(uid)
      })
      changes.gone((caller) => caller.uid === uid)
    },
    setRoles(uid, roles) {
      transaction(() => {
        const user = get(uid)
        if (!roles.includes('admin')) keepAnAdministrator(user)
        store.setRoles(uid, roles, clock.now())
      })
      changes.rightsChanged()
    },
    renewLink(uid) {
      get(uid)
      links.make(uid)
      return links.takeUnshown(uid) ?? ''
    },
  }
}

/** A user in the API. @param activationLink for the one reply that shows it */
export const toUser = (user: UserRecord, activationLink?: string): User => ({
  metadata: {
    annotations: user.annotations,
    creationTimestamp: formatTime(user.createdAt),
    labels: user.labels,
    lastModifiedTimestamp: formatTime(user.modifiedAt),
    name: user.email,
    uid: user.uid,
  },
  spec: {
    emailId: user.email,
    firstName: user.firstName,
    lastName: user.lastName,
    roles: [...user.roles],
  },
  status: {
    ...(activationLink === undefined ? {} : { activationLink }),
    isActive: user.password !== '',
    isPasswordResetting: user.resetRequestedAt > 0,
    ...(user.lastSignInAt > 0 ? { lastSignIn: formatTime(user.lastSignInAt) } : {}),
  },
})

interface UserPartsOptions {
  /** The beginning of a link: `https://platform.plant.example`. */
  readonly origin: () => string
  /** The default is the one of `PasswordHashesOptions`. */
  readonly passwordCost: HashCost | undefined
  readonly changes: CallerChanges
}

/** A user behind a token. */
export interface SignedIn {
  readonly uid: string
  readonly email: string
  /** The highest role for the tenant; `undefined` without one. */
  readonly role: Role | undefined
}

/** Users, their passwords and tokens. */
export interface UserParts {
  readonly users: Users
  readonly links: PasswordLinks
  readonly signIn: SignIn
  /** The user of a token, with its session; `undefined` for one that is not valid. */
  authenticate(token: string): (SignedIn & { readonly sessionUid: string }) | undefined
  /** A user by its uid, for a key. */
  userOf(uid: string): SignedIn | undefined
  find(uid: string): UserRecord | undefined
  /** The role of a user for the tenant; `undefined` without one. */
  roleOf(uid: string): Role | undefined
  isUser(uid: string): boolean
  readonly jobs: readonly Job[]
  stop(): void
}

/** Creates the parts in the order of their dependencies. */
export async function createUserParts(
  ground: Ground<{ readonly platform: { readonly guard: GuessLimits } }>,
  { origin, passwordCost, changes }: UserPartsOptions,
): Promise<UserParts> {
  const { database, secrets, clock, log, anonymousLog } = ground
  const limits = ground.config.platform.guard
  const store = createUserStore(database)
  const links = createPasswordLinks({ store, clock, origin })
  const tokens = await createUserTokens({ key: secrets.derive('token of a user'), database, clock })
  const guard = createGuessGuard({
    ...limits,
    clock,
    log,
    store: createGuessStore(database, limits.trackedKeys),
    userKey: createSecretKey(secrets.derive('guessed user')),
    // Users come from changing addresses, so no address vouches for one.
    isKnown: () => false,
  })
  return {
    users: createUsers({ store, links, transaction: database.transaction, changes, clock }),
    links,
    signIn: createSignIn({
      store,
      links,
      hashes: createPasswordHashes(passwordCost && { cost: passwordCost }),
      guard,
      tokens,
      changes,
      clientOf: clientOfAddress,
      clock,
      anonymousLog,
    }),
    authenticate(token) {
      const claims = tokens.read(token)
      const user = claims && store.find(claims.sub)
      return claims && user?.generation === claims.gen
        ? { ...toSignedIn(user), sessionUid: sessionOf(claims) }
        : undefined
    },
    userOf(uid) {
      const user = store.find(uid)
      return user && toSignedIn(user)
    },
    find: store.find,
    roleOf: (uid) => highest(store.find(uid)?.roles ?? []),
    isUser: (uid) => store.find(uid) !== undefined,
    jobs: [
      {
        name: 'failed sign-ins',
        schedule: '*/10 * * * * *',
        stuckAfterMs: 300_000,
        run: () => guard.flush(),
      },
      { name: 'revoked tokens', schedule: '29 * * * * *', stuckAfterMs: 300_000, run: () => tokens.sweep() },
    ],
    stop: () => guard.flush(),
  }
}

const toSignedIn = ({ uid, email, roles }: UserRecord): SignedIn => ({ uid, email, role: highest(roles) })

/** The role that allows most. */
export const highest = (roles: readonly Role[]): Role | undefined =>
  roles.reduce<Role | undefined>(
    (best, role) => (best === undefined || isAtLeast(role, best) ? role : best),
    undefined,
  )
