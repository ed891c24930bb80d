import { hash, randomBytes } from 'node:crypto'
import { setBackMs, isValidAt } from '../../base/time.ts'
import type { Clock } from '../../system/clock.ts'
import type { UserRecord, UserStore } from './store.ts'
import type { JsonObject } from '../../base/json.ts'
import { createSignedClaims } from '../../credentials/signed-claims.ts'
import type { Database } from '../../store/database.ts'
import type { ClientOf } from '../../base/client.ts'
import type { GuessGuard } from '../../credentials/guess-guard.ts'
import type { PasswordHashes } from '../../credentials/password-hash.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { refusedField } from '../../errors/refused-field.ts'
import { isUnwritable } from '../../store/unwritable.ts'
import type { Lines } from '../../system/anonymous-log.ts'
import { platformErrors } from '../codes.ts'
import type { CallerChanges } from '../requests/changes.ts'

/** Links by which a user sets a password: valid for a day, used once. The database has only their hashes. */
export interface PasswordLinks {
  /** Makes a link for a user, which ends the earlier one; it is shown once. */
  make(uid: string): void
  /** The link that was made and not shown yet. A restart forgets it, and an administrator makes another one. */
  takeUnshown(uid: string): string | undefined
  /** The user of a token; `undefined` for one that is unknown, used or too old. */
  find(token: string): UserRecord | undefined
}

const lifeMs = 86_400_000

/** @param origin the beginning of a link: `https://platform.plant.example` */
export function createPasswordLinks({
  store,
  clock,
  origin,
}: {
  readonly store: UserStore
  readonly clock: Clock
  readonly origin: () => string
}): PasswordLinks {
  const unshown = new Map<string, { readonly token: string; readonly until: number }>()
  return {
    make(uid) {
      const token = randomBytes(32).toString('base64url')
      const until = clock.now() + lifeMs
      store.setLink(uid, hashOf(token), until)
      unshown.set(uid, { token, until })
    },
    takeUnshown(uid) {
      const found = unshown.get(uid)
      unshown.delete(uid)
      if (found === undefined || found.until <= clock.now()) return undefined
      return `${origin()}/v1/auth/password/${found.token}/activate`
    },
    // One that ends later than any that is made now was made while the clock was ahead.
    find: (token) => store.findByLink(hashOf(token), clock.now(), clock.now() + lifeMs + setBackMs),
  }
}

const hashOf = (token: string) => hash('sha256', token, 'hex')

/** Claims of a token of a user. */
interface UserClaims {
  /** Uid of the user. */
  readonly sub: string
  readonly jti: string
  /** Generation of the user's tokens. */
  readonly gen: number
  /** Seconds since 1970. */
  readonly iat: number
  readonly exp: number
}

/** Tokens of users: valid for 15 minutes, unless they are revoked or the user's generation has changed. */
interface UserTokens {
  /** @param session of the token that it replaces; by default it begins a new one */
  make(uid: string, generation: number, session?: string): string
  /** @returns undefined for a token that is altered, expired, revoked, or from a time that is yet to come */
  read(token: string): UserClaims | undefined
  /** Ends a token; an invalid one is ignored. @returns the claims of a valid one */
  revoke(token: string): UserClaims | undefined
  /** Forgets revoked tokens that have expired long ago. */
  sweep(): void
}

/** The session of a token; a token that replaces it has the same. */
export const sessionOf = ({ jti }: Pick<UserClaims, 'jti'>): string => jti.slice(0, sessionCharacters)

const sessionCharacters = 16
const lifeSeconds = 15 * 60

// Longer than they last: a clock that was ahead for a while, and a restart, must not make a revoked token valid again.
const keptMs = 30 * 86_400_000

export async function createUserTokens({
  key,
  database: { sql },
  clock,
}: {
  readonly key: Buffer
  readonly database: Database
  readonly clock: Clock
}): Promise<UserTokens> {
  const { sign, read: claimsOf } = await createSignedClaims({
    key,
    required: ['sub', 'jti', 'gen'],
    // The times are compared here, since the tests set this clock.
    isExpiryChecked: false,
  })
  const isRevoked = sql.prepare('SELECT 1 FROM revoked_token WHERE id = ?')
  const revoke = sql.prepare('INSERT OR IGNORE INTO revoked_token (id, expires_at) VALUES (?, ?)')
  const sweep = sql.prepare('DELETE FROM revoked_token WHERE expires_at <= ?')

  /**
   * Time at which each token was revoked, by the monotonic clock; the oldest first. A clock that is far ahead has the sweep forget tokens that
   * have not expired.
   */
  const justRevoked = new Map<string, number>()

  function read(token: string): UserClaims | undefined {
    const claims = claimsOf(token)
    if (!isUserClaims(claims) || !isValidAt(clock.now(), claims)) return undefined
    return justRevoked.has(claims.jti) || isRevoked.get(claims.jti) !== undefined ? undefined : claims
  }

  return {
    make(sub, gen, session = randomBytes(12).toString('base64url')) {
      const iat = Math.floor(clock.now() / 1_000)
      // Short, since a token may be a part of a path, whose parameters have at most 256 characters.
      return sign({
        sub,
        jti: session + randomBytes(6).toString('base64url'),
        gen,
        iat,
        exp: iat + lifeSeconds,
      })
    },
    read,
    revoke(token) {
      const claims = read(token)
      if (!claims) return undefined
      revoke.run(claims.jti, claims.exp * 1_000)
      justRevoked.set(claims.jti, clock.monotonic())
      return claims
    },
    sweep() {
      sweep.run(clock.now() - keptMs)
      for (const [id, at] of justRevoked) {
        if (clock.monotonic() - at < lifeSeconds * 1_000 + setBackMs) break
        justRevoked.delete(id)
      }
    },
  }
}

// The library checks only that there are such claims; their types are checked here.
function isUserClaims(value: JsonObject | undefined): value is JsonObject & UserClaims {
  if (value === undefined) return false
  const { sub, jti, gen, iat, exp } = value
  return (
    typeof sub === 'string' &&
    typeof jti === 'string' &&
    Number.isInteger(gen) &&
    Number.isInteger(iat) &&
    Number.isInteger(exp)
  )
}

interface SignInOptions {
  readonly store: UserStore
  readonly links: PasswordLinks
  readonly hashes: PasswordHashes
  readonly guard: GuessGuard
  readonly tokens: UserTokens
  readonly changes: Pick<CallerChanges, 'gone'>
  readonly clientOf: ClientOf
  readonly clock: Clock
  /** Logs refusals. */
  readonly anonymousLog: Lines
}

/** Origin of a request, and its callbacks. */
interface SignInRequest {
  readonly email: string
  readonly password: string
  readonly address: string
  /** Request id, for the journal. */
  readonly ref: string
  /** Called as soon as the user is known to exist, even if the sign-in is then refused. */
  readonly onKnown: (user: Pick<UserRecord, 'uid' | 'email'>) => void
  /** Called when the password was right. */
  readonly onProven: () => void
  /** Called after a refusal: whether it gets a log line of its own; false when it is only counted. */
  readonly hasOwnRecord: () => boolean
}

/** Checks passwords of users. For every reason of a refusal, text and cost are the same; only the journal has the reason. */
export interface SignIn {
  /** Makes a token. @throws AppError SignInRefused, TooManyAttempts, TooManyPasswords */
  authenticate(request: SignInRequest): Promise<string>
  /** Makes a new token for one that is still valid; the old one ends, its session does not. @throws AppError Unauthenticated */
  refresh(token: string): { readonly token: string; readonly user: UserRecord }
  /** Ends a token and its session; an invalid one is ignored. */
  end(token: string): void
  /** Sets a password by a link. @throws AppError LinkRefused, BadRequest, TooManyPasswords */
  activate(token: string, password: string, address: string): Promise<UserRecord>
  /** Notes that a user asks for a new link; says nothing of whether there is such a user. */
  askForLink(email: string): void
  /** Sets a new password; every token of the user ends. @throws AppError as `authenticate` */
  change(request: SignInRequest, newPassword: string): Promise<void>
}

export function createSignIn(options: SignInOptions): SignIn {
  const { store, links, hashes, guard, tokens, changes, clientOf, clock, anonymousLog } = options

  /** Sets a password; every token of the user ends, its keys do not. */
  function setPassword(userUid: string, text: string): void {
    store.setPassword(userUid, text, clock.now())
    changes.gone(({ kind, uid }) => kind === 'user' && uid === userUid)
  }

  /** The hash of a password that a user may have; the only way to one. @param field the path of the password in the request */
  function hashNew(field: string, password: string, user: UserRecord, address: string): Promise<string> {
    requireGoodPassword(field, password, user)
    return hashes.hash(password, waiterOf(address))
  }

  const refused = () =>
    new AppError(platformErrors.SignInRefused, 'the e-mail address or the password is wrong')

  const waiterOf = (address: string) => {
    const { name, network } = clientOf(address)
    return { group: network ?? name, member: name }
  }

  async function check(request: SignInRequest, purpose: string): Promise<UserRecord> {
    const { email, password, address, ref } = request
    const user = store.findByEmail(email)
    if (user) request.onKnown(user)
    const sayRefused = (reason: string) => {
      const line = { ref, user: user?.email, address, purpose, reason }
      if (request.hasOwnRecord()) anonymousLog.info(line, 'sign-in refused')
    }
    let attempt
    try {
      attempt = guard.begin(email, clientOf(address))
    } catch (error) {
      sayRefused((error as Error).message)
      throw error
    }
    let isRight: boolean
    try {
      isRight = await hashes.verify(password, user?.password ?? '', waiterOf(address))
    } catch (error) {
      attempt.cancel()
      throw error
    }
    // The user may have been deleted, or the password changed, while it was checked.
    const now = user && store.find(user.uid)
    if (!isRight || now?.generation !== user?.generation || !now) {
      attempt.fail()
      sayRefused(user ? (user.password === '' ? 'no password yet' : 'wrong password') : 'unknown user')
      throw refused()
    }
    attempt.succeed()
    request.onProven()
    return now
  }

  return {
    async authenticate(request) {
      const user = await check(request, 'sign-in')
      try {
        store.noteSignIn(user.uid, clock.now())
      } catch (error) {
        // An administrator has to sign in to a platform whose disk is full.
        if (!isUnwritable(error)) throw error
      }
      return tokens.make(user.uid, user.generation)
    },
    refresh(token) {
      const claims = tokens.read(token)
      const user = claims && store.find(claims.sub)
      if (user?.generation !== claims?.gen || !user)
        throw new AppError(generalErrors.Unauthenticated, 'sign in again: the token is expired or revoked')
      tokens.revoke(token)
      return { token: tokens.make(user.uid, user.generation, sessionOf(claims)), user }
    },
    end(token) {
      const claims = tokens.revoke(token)
      if (!claims) return
      const ended = sessionOf(claims)
      changes.gone(({ sessionUid }) => sessionUid === ended)
    },
    async activate(token, password, address) {
      const none = () =>
        new AppError(platformErrors.LinkRefused, 'this link is unknown, used, or older than a day')
      const found = links.find(token)
      if (!found) throw none()
      const text = await hashNew('password', password, found, address)
      // Used meanwhile, or ended by a newer one.
      const user = links.find(token)
      if (!user) throw none()
      setPassword(user.uid, text)
      return user
    },
    askForLink(email) {
      const user = store.findByEmail(email)
      if (user?.resetRequestedAt !== 0) return
      try {
        store.noteReset(user.uid, clock.now())
      } catch (error) {
        // The answer does not tell that there is such a user, on a full disk neither.
        if (!isUnwritable(error)) throw error
        anonymousLog.info({ user: user.email }, 'a request for a new link could not be noted')
      }
    },
    async change(request, newPassword) {
      const user = await check(request, 'password change')
      const text = await hashNew('newPassword', newPassword, user, request.address)
      if (store.find(user.uid)?.generation !== user.generation) throw refused()
      setPassword(user.uid, text)
    },
  }
}

/**
 * Refuses passwords that are guessed first. The schema has the length; passwords that are set already stay.
 * @throws AppError BadRequest
 */
function requireGoodPassword(field: string, password: string, user: UserRecord): void {
  const plain = (text: string) => text.normalize('NFC').toLowerCase().replace(/\s/g, '')
  const { email, firstName, lastName } = user
  const names = [
    email,
    email.split('@')[0] ?? '',
    firstName,
    lastName,
    firstName + lastName,
    lastName + firstName,
  ]
  if (new Set(password.normalize('NFC')).size === 1)
    throw refusedField(field, 'is one character over and over; choose another one')
  if (names.some((name) => plain(name) === plain(password)))
    throw refusedField(field, 'is the name or the e-mail address of the user; choose another one')
}
