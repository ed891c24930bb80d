import type { ClientOf } from '../../base/client.ts'
import type { GuessGuard } from '../../credentials/guess-guard.ts'
import type { PasswordHashes } from '../../credentials/password-hash.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { refusedField } from '../../errors/refused-field.ts'
import { isUnwritable } from '../../store/unwritable.ts'
import type { Clock } from '../../system/clock.ts'
import type { Lines } from '../../system/anonymous-log.ts'
import { platformErrors } from '../codes.ts'
import type { PasswordLinks } from './password-links.ts'
import type { UserRecord, UserStore } from './user-store.ts'
import type { CallerChanges } from '../caller-changes.ts'
import { sessionOf, type UserTokens } from './user-tokens.ts'

export interface SignInOptions {
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

/** Where a request comes from, and what it tells meanwhile. */
export interface SignInRequest {
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
  /** Ends a token and its session; what is no valid token is left alone. */
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
 * Refuses what is guessed first. The length is that of the schema; passwords that are set already stay.
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
