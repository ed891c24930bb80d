import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { seeDisk } from '../errors/advice.ts'
import { AppError } from '../errors/app-error.ts'
import { authErrors } from './codes.ts'
import type { Database } from '../store/database.ts'
import { isUnwritable } from '../store/unwritable.ts'
import type { ClientOf } from '../base/client.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { Lines } from '../system/anonymous-log.ts'
import type { Accounts } from './accounts.ts'
import type { Account } from './account.ts'
import { isPossiblePassword, isPossibleUserName } from './credentials.ts'
import type { GuessGuard } from '../credentials/guess-guard.ts'
import type { LoginHistory } from './login-history.ts'
import type { Credentials, Pam } from './pam.ts'
import type { PamSlots } from './pam-slots.ts'
import type { Sessions, TokenPair } from './sessions.ts'

export interface LoginOptions {
  readonly pam: Pam
  readonly slots: PamSlots
  readonly guard: GuessGuard
  readonly accounts: Accounts
  readonly sessions: Sessions
  readonly history: LoginHistory
  readonly clientOf: ClientOf
  readonly transaction: Database['transaction']
  readonly clock: Clock
  readonly log: Logger
  /** Logs refusals. */
  readonly anonymousLog: Lines
  readonly refusalDelayMs: number
}

export interface LoginRequest extends Credentials {
  /** When the request arrived, monotonic milliseconds. */
  readonly arrivedAt: number
  /** Request id, for the journal. */
  readonly ref: string
  /**
   * Called with the name of the account as soon as the account is known to exist, even if the login is then refused.
   */
  readonly onKnown?: (userName: string) => void
  /** Called when the password was right, even if the request is then refused. */
  readonly onProven?: () => void
  /** Called after a refusal: whether it gets a log line of its own; false when it is only counted. */
  readonly hasOwnRecord?: () => boolean
  /** Called while PAM works: work done here does not delay the answer. */
  readonly onAsked?: () => void
}

export interface Login {
  /**
   * Logs an account in.
   * @throws AppError InvalidCredentials, PasswordExpired, TooManyAttempts, TooManyLogins, PamUnavailable
   */
  login(request: LoginRequest, isExtended: boolean): Promise<{ tokens: TokenPair; isFirstLogin: boolean }>
  /**
   * Checks a password exactly like a login, except for its expiry: counted, delayed and refused in the same way.
   * @param purpose names the check in the journal
   * @param refuse makes the error of a refusal
   * @throws AppError as `login`, without PasswordExpired
   */
  check(request: LoginRequest, purpose: string, refuse?: Refuse): Promise<Account>
}

/** Makes the error of a refusal; `words` is the text of PAM, if PAM refused. */
export type Refuse = (words?: string) => AppError

/** `refusal` is for the journal only. */
type Finding =
  | { readonly account: Account; readonly isExpired: boolean }
  | { readonly refusal: string; readonly words?: string }

/** A finding, and how long the request waited before PAM started; undefined when PAM did not start. */
type Outcome = Finding & { readonly waitedMs?: number }

/** The journal line of a login. */
interface Line {
  readonly ref: string
  /** Only for an existing account: people type passwords into the wrong field. */
  user: string | undefined
  readonly address: string
  readonly purpose: string
}

type PamAnswer = Awaited<ReturnType<Pam['verify']>>

const spareMs = 200

/**
 * Handles logins. For every reason of a refusal, body, headers and time of the reply are the same; only the journal has
 * the reason.
 */
export function createLogin(options: LoginOptions): Login {
  const { pam, slots, guard, accounts, sessions, history, clientOf, transaction, clock, log, anonymousLog } =
    options

  async function decide(request: LoginRequest): Promise<Outcome> {
    const { userName, password, address } = request
    if (!isPossibleUserName(userName)) return { refusal: 'not a possible user name' }
    if (!isPossiblePassword(password)) return { refusal: 'not a possible password' }
    const client = clientOf(address)
    const knownUser = history.isKnown(userName, client) ? userName.toLowerCase() : undefined
    const { before, verdict, waitedMs } = await slots.run({ client, knownUser }, async (started) => {
      const waited = clock.monotonic() - request.arrivedAt
      // Read before too: a password that was valid a moment ago must not start a session of the changed account.
      const account = await readBefore(userName)
      if (account) request.onKnown?.(account.name)
      const both = [pam.verify(request, started), meanwhile(request)] as const
      // Also when PAM fails at once: `onAsked` must not record anything after the end of the request.
      await Promise.allSettled(both)
      const [verdict] = await Promise.all(both)
      return { before: account, verdict, waitedMs: waited }
    })
    return { ...(await judge(userName, verdict, before)), waitedMs }
  }

  async function meanwhile({ onAsked }: LoginRequest): Promise<void> {
    // Except for the first login, the child has been started by then.
    await nextTurn()
    onAsked?.()
  }

  // Read from the files first: the groups do not matter yet, and a directory that does not answer would occupy a slot.
  async function readBefore(userName: string): Promise<Account | undefined> {
    try {
      return accounts.readLocal().find(userName) ?? (await accounts.read(userName))
    } catch {
      return undefined
    }
  }

  async function judge(userName: string, verdict: PamAnswer, before: Account | undefined): Promise<Finding> {
    // The state of the account is only for the journal; an attempt counts even if a directory does not answer.
    if (verdict.kind === 'refused')
      return { refusal: describeRefusal(verdict.reason, before, clock.now()), words: verdict.reason }
    const account = await accounts.read(userName).catch((error: unknown) => {
      throw new AppError(authErrors.PamUnavailable, "the host's directory of accounts did not answer", {
        cause: error,
      })
    })
    if (!account) return { refusal: 'accepted by PAM, but unknown to NSS' }
    if (before?.mark !== account.mark) return { refusal: 'the account changed during the login' }
    if (account.locked || (account.expiresAt !== undefined && account.expiresAt <= clock.now()))
      return { refusal: describeRefusal('', account, clock.now()) }
    if (!account.hasLoginShell) return { refusal: 'shell is not in /etc/shells' }
    return { account, isExpired: verdict.kind === 'password-expired' }
  }

  /**
   * Waits until a refusal may be sent: the delay after the arrival of the request. After a wait in the queue or a slow
   * PAM it is sent later, at a full second, so that neither shows how long the check took.
   */
  async function untilRefusal(arrivedAt: number, waitedMs: number): Promise<void> {
    const { refusalDelayMs } = options
    const elapsed = clock.monotonic() - arrivedAt
    // PAM's own delay leaves some tenths of a second; a shorter wait is hidden by it.
    const earliest = waitedMs > spareMs ? waitedMs + refusalDelayMs : refusalDelayMs
    const least = Math.max(earliest, elapsed)
    await sleep((least <= refusalDelayMs ? refusalDelayMs : Math.ceil(least / 1_000) * 1_000) - elapsed)
  }

  async function verify(request: LoginRequest, purpose: string, refuse: Refuse) {
    const { address, ref, arrivedAt } = request
    const line: Line = { ref, user: undefined, address, purpose }
    const attempt = begin(request, line)
    let outcome: Outcome
    const onKnown = (name: string) => {
      line.user = name
      request.onKnown?.(name)
    }
    try {
      outcome = await decide({ ...request, onKnown })
    } catch (error) {
      attempt.cancel()
      if (error instanceof AppError && hasOwnRecord(request))
        anonymousLog.warn({ ...line, reason: error.code }, 'login could not be decided')
      throw error
    }
    if ('refusal' in outcome) {
      await untilRefusal(arrivedAt, outcome.waitedMs ?? 0)
      attempt.fail()
      sayRefused(request, line, outcome.refusal)
      throw refuse(outcome.words)
    }
    attempt.succeed()
    request.onProven?.()
    line.user = outcome.account.name
    return { ...outcome, line }
  }

  const hasOwnRecord = (request: LoginRequest) => request.hasOwnRecord?.() ?? true

  function sayRefused(request: LoginRequest, line: Line, reason: string): void {
    if (hasOwnRecord(request)) anonymousLog.info({ ...line, reason }, 'login refused')
  }

  /** An administrator must be able to log in on a full disk, to free space: the session is then in memory only. */
  function beginSession(account: Account, { address, ref }: LoginRequest, isExtended: boolean) {
    let tokens: TokenPair | undefined
    let isFirstLogin = false
    // Outside the transaction: the end of a session is recorded in the trail, and a rollback must not undo it.
    sessions.makeRoom(account.name)
    try {
      // In one transaction; the record of the request follows, and its sync covers both.
      isFirstLogin = transaction(() => {
        tokens = sessions.create(account, address, isExtended)
        return history.record(account.name, clientOf(address), clock.now())
      })
    } catch (error) {
      if (!isUnwritable(error)) throw error
      log.error(
        { err: error, ref },
        `the session cannot be stored; it ends when the daemon stops; ${seeDisk}`,
      )
    }
    return { isFirstLogin, tokens: tokens ?? sessions.create(account, address, isExtended, false) }
  }

  function begin(request: LoginRequest, line: Line) {
    const { userName, address } = request
    try {
      return guard.begin(userName, clientOf(address))
    } catch (error) {
      const isKnown = isPossibleUserName(userName) && accounts.isLocal(userName)
      sayRefused(request, { ...line, user: isKnown ? userName : undefined }, (error as Error).message)
      throw error
    }
  }

  return {
    async login(request, isExtended) {
      const { account, isExpired, line } = await verify(request, 'login', invalidCredentials)
      if (isExpired) {
        sayRefused(request, line, 'password expired')
        throw new AppError(
          authErrors.PasswordExpired,
          'the password has expired; set a new one with POST /v1/users/default/password/reset',
        )
      }
      const { isFirstLogin, tokens } = beginSession(account, request, isExtended)
      log.info({ ...line, role: account.role, isFirstLogin }, 'login')
      return { tokens, isFirstLogin }
    },
    check: async (request, purpose, refuse = invalidCredentials) =>
      (await verify(request, purpose, refuse)).account,
  }
}

const invalidCredentials: Refuse = () =>
  new AppError(authErrors.InvalidCredentials, 'user name or password is wrong')

function describeRefusal(pamReason: string, account: Account | undefined, now: number): string {
  if (!account) return 'unknown user'
  if (account.locked) return 'account locked'
  if (account.expiresAt !== undefined && account.expiresAt <= now) return 'account expired'
  return pamReason
}
