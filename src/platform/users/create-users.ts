import { createSecretKey } from 'node:crypto'
import type { Role } from '../../base/role.ts'
import { isAtLeast } from '../../base/role.ts'
import type { ClientOf } from '../../base/client.ts'
import type { GuessLimits } from '../../credentials/config.ts'
import { createGuessGuard } from '../../credentials/guess-guard.ts'
import { createGuessStore } from '../../credentials/guess-store.ts'
import { createPasswordHashes, type HashCost } from '../../credentials/password-hash.ts'
import type { Job } from '../../room.ts'
import type { Secrets } from '../../secrets/secrets.ts'
import type { Database } from '../../store/database.ts'
import type { Lines } from '../../system/anonymous-log.ts'
import type { Clock } from '../../system/clock.ts'
import type { Logger } from '../../system/log.ts'
import type { CallerChanges } from '../caller-changes.ts'
import { createPasswordLinks, type PasswordLinks } from './password-links.ts'
import { createSignIn, type SignIn } from './sign-in.ts'
import { createUserStore, type UserRecord } from './user-store.ts'
import { createUserTokens, sessionOf } from './user-tokens.ts'
import { createUsers, type Users } from './users.ts'

export interface UserPartsOptions {
  readonly guard: GuessLimits
  readonly database: Database
  readonly secrets: Secrets
  readonly clientOf: ClientOf
  /** The beginning of a link: `https://platform.plant.example`. */
  readonly origin: () => string
  /** The default is that of `PasswordHashesOptions`. */
  readonly passwordCost: HashCost | undefined
  readonly changes: CallerChanges
  readonly clock: Clock
  readonly log: Logger
  readonly anonymousLog: Lines
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
export async function createUserParts(options: UserPartsOptions): Promise<UserParts> {
  const { database, secrets, clientOf, changes, clock, log, anonymousLog } = options
  const store = createUserStore(database)
  const links = createPasswordLinks({ store, clock, origin: options.origin })
  const tokens = await createUserTokens({ key: secrets.derive('token of a user'), database, clock })
  const guard = createGuessGuard({
    ...options.guard,
    ...{ clock, log, store: createGuessStore(database, options.guard.trackedKeys) },
    userKey: createSecretKey(secrets.derive('guessed user')),
    // Users come from changing addresses, so no address vouches for one.
    isKnown: () => false,
  })
  return {
    users: createUsers({ store, links, transaction: database.transaction, changes, clock }),
    links,
    signIn: createSignIn({
      ...{
        store,
        links,
        hashes: createPasswordHashes(options.passwordCost && { cost: options.passwordCost }),
        guard,
        tokens,
        changes,
      },
      ...{ clientOf, clock, anonymousLog },
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
