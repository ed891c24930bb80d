import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { seeDisk } from '../errors/advice.ts'
import { AppError } from '../errors/app-error.ts'
import { authErrors } from './codes.ts'
import type { Database } from '../store/database.ts'
import { isUnwritable } from '../store/unwritable.ts'
import type { ClientOf } from '../base/client.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { Lines } from '../system/stranger-log.ts'
import type { Accounts } from './accounts.ts'
import type { Account } from './account.ts'
import { isPossiblePassword, isPossibleUserName } from './credentials.ts'
import type { GuessGuard } from './guess-guard.ts'
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
  /** Takes the lines about refusals. */
  readonly strangers: Lines
  readonly refusalDelayMs: number
}

export interface LoginRequest extends Credentials {
  /** When the request arrived, monotonic milliseconds. */
  readonly arrivedAt: number
  /** Request id, for the journal. */
  readonly ref: string
  /** Told the name of the account as soon as there is known to be one, also where it is refused then. */
  readonly onKnown?: (userName: string) => void
  /** Told that the password was right, also where the request is refused then. */
  readonly onProven?: () => void
  /** Asked, once it is refused, whether the journal says so by itself; else what counts it does. */
  readonly isTold?: () => boolean
  /** Called while PAM is at work: what takes its time here does not delay the answer. */
  readonly onAsked?: () => void
}

export interface Login {
  /**
   * Logs an account in.
   * @throws AppError InvalidCredentials, PasswordExpired, TooManyAttempts, TooManyLogins, PamUnavailable
   */
  login(request: LoginRequest, isExtended: boolean): Promise<{ tokens: TokenPair; isFirstLogin: boolean }>
  /**
   * Checks a password exactly as a login does, but for its expiry: counted, delayed and refused alike.
   * @param purpose what the journal calls it
   * @param refuse makes the error of a refusal
   * @throws AppError as `login`, without PasswordExpired
   */
  check(request: LoginRequest, purpose: string, refuse?: Refuse): Promise<Account>
}

/** Makes the error of a refusal; `words` are PAM's own, where it was PAM that refused. */
export type Refuse = (words?: string) => AppError

/** `refusal` is for the journal only. */
type Finding =
  | { readonly account: Account; readonly isExpired: boolean }
  | { readonly refusal: string; readonly words?: string }

/** With how long the request waited before PAM was asked; nothing when it was not. */
type Outcome = Finding & { readonly waitedMs?: number }

/** What the journal says of each login. */
interface Line {
  readonly ref: string
  /** Of an account that there is: people type passwords into the wrong field. */
  user: string | undefined
  readonly address: string
  readonly purpose: string
}

type PamAnswer = Awaited<ReturnType<Pam['verify']>>

const spareMs = 200

/**
 * Logins. Whatever the reason of a refusal is, body, headers and the time it leaves are the same; only the journal
 * knows the difference.
 */
export function createLogin(options: LoginOptions): Login {
  const { pam, slots, guard, accounts, sessions, history, clientOf, transaction, clock, log, strangers } =
    options

  async function decide(request: LoginRequest): Promise<Outcome> {
    const { userName, password, address } = request
    if (!isPossibleUserName(userName)) return { refusal: 'not a possible user name' }
    if (!isPossiblePassword(password)) return { refusal: 'not a possible password' }
    const client = clientOf(address)
    const knownUser = history.isKnown(userName, client) ? userName.toLowerCase() : undefined
    const { before, verdict, waitedMs } = await slots.run({ client, knownUser }, async (started) => {
      const waited = clock.monotonic() - request.arrivedAt
      // Also before: a password that was right until a moment ago must not begin a session of the account as it is now.
      const account = await readBefore(userName)
      if (account) request.onKnown?.(account.name)
      const both = [pam.verify(request, started), meanwhile(request)] as const
      // Also where PAM fails at once: what is noted after the end of the request would never end.
      await Promise.allSettled(both)
      const [verdict] = await Promise.all(both)
      return { before: account, verdict, waitedMs: waited }
    })
    return { ...(await judge(userName, verdict, before)), waitedMs }
  }

  async function meanwhile({ onAsked }: LoginRequest): Promise<void> {
    // But for the very first one, the child is on its way by then.
    await nextTurn()
    onAsked?.()
  }

  // The files first: the groups do not matter yet, and a directory that is silent about them would hold a slot.
  async function readBefore(userName: string): Promise<Account | undefined> {
    try {
      return accounts.readLocal().find(userName) ?? (await accounts.read(userName))
    } catch {
      return undefined
    }
  }

  async function judge(userName: string, verdict: PamAnswer, before: Account | undefined): Promise<Finding> {
    // What is wrong with the account is for the journal only; a directory that is silent makes no try free.
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
   * Waits until the moment at which a refusal leaves: the delay after the request arrived; later, after a wait in the
   * queue or a slow PAM, at a full second, so that neither shows how long the check itself took.
   */
  async function untilRefusal(arrivedAt: number, waitedMs: number): Promise<void> {
    const { refusalDelayMs } = options
    const elapsed = clock.monotonic() - arrivedAt
    // PAM's own delay has some tenths of a second to spare; a shorter wait than that disappears in it.
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
      if (error instanceof AppError && isTold(request))
        strangers.warn({ ...line, reason: error.code }, 'login not decided')
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

  const isTold = (request: LoginRequest) => request.isTold?.() ?? true

  function sayRefused(request: LoginRequest, line: Line, reason: string): void {
    if (isTold(request)) strangers.info({ ...line, reason }, 'login refused')
  }

  /** An administrator must be able to log in on a full disk, to make room: the session is then in memory only. */
  function beginSession(account: Account, { address, ref }: LoginRequest, isExtended: boolean) {
    let tokens: TokenPair | undefined
    let isFirstLogin = false
    // Not within the transaction: its end is recorded, and would be undone with it.
    sessions.makeRoom(account.name)
    try {
      // Together; the record of the request follows, and the wait for the disk with it.
      isFirstLogin = transaction(() => {
        tokens = sessions.create(account, address, isExtended)
        return history.record(account.name, clientOf(address), clock.now())
      })
    } catch (error) {
      if (!isUnwritable(error)) throw error
      log.error({ err: error, ref }, `the session cannot be written; it ends with the daemon; ${seeDisk}`)
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
