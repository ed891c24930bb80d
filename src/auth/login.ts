import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../errors/app-error.ts'
import { addressGroup } from '../system/address.ts'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { Account, Accounts } from './accounts.ts'
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
  readonly transaction: Database['transaction']
  readonly clock: Clock
  readonly log: Logger
  readonly allowAnyShell: boolean
  readonly refusalDelayMs: number
}

export interface LoginRequest extends Credentials {
  /** When the request arrived, monotonic milliseconds. */
  readonly arrivedAt: number
  /** Request id, for the journal. */
  readonly ref: string
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
   * @throws AppError as `login`, without PasswordExpired
   */
  check(request: LoginRequest, purpose: string): Promise<Account>
}

type Outcome =
  | { readonly account: Account; readonly isExpired: boolean }
  | { readonly refusal: string; readonly waitedMs?: number }

const spareMs = 200

/**
 * Logins. Whatever the reason of a refusal is, body, headers and the time it leaves are the same; only the journal
 * knows the difference.
 */
export function createLogin(options: LoginOptions): Login {
  const { pam, slots, guard, accounts, sessions, history, transaction, clock, log, allowAnyShell } = options

  async function decide(request: LoginRequest): Promise<Outcome> {
    const { userName, password } = request
    if (!isPossibleUserName(userName)) return { refusal: 'not a possible user name' }
    if (!isPossiblePassword(password)) return { refusal: 'not a possible password' }
    const { before, verdict, waitedMs } = await slots.run(async () => {
      const waited = clock.monotonic() - request.arrivedAt
      // Also before: a password that was right until a moment ago must not begin a session of the account as it is now.
      const account = await accounts.read(userName).catch(() => undefined)
      return { before: account, verdict: await pam.verify(request), waitedMs: waited }
    })
    // What is wrong with the account is for the journal only; a directory that is silent makes no try free.
    if (verdict.kind === 'refused')
      return { refusal: describeRefusal(verdict.reason, before, clock.now()), waitedMs }
    const account = await accounts.read(userName).catch((error: unknown) => {
      throw new AppError('PamUnavailable', "the host's directory of accounts did not answer", {
        cause: error,
      })
    })
    if (!account) return { refusal: 'accepted by PAM, but unknown to NSS', waitedMs }
    if (before?.mark !== account.mark) return { refusal: 'the account changed during the login', waitedMs }
    if (account.locked || (account.expiresAt !== undefined && account.expiresAt <= clock.now()))
      return { refusal: describeRefusal('', account, clock.now()), waitedMs }
    if (!allowAnyShell && !account.hasLoginShell) return { refusal: 'shell is not in /etc/shells', waitedMs }
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

  async function verify(request: LoginRequest, purpose: string) {
    const { userName, address, ref, arrivedAt } = request
    // The journal gets the name as it was typed only if it can be one; people type passwords into the wrong field.
    const line = { ref, user: isPossibleUserName(userName) ? userName : undefined, address, purpose }
    const attempt = begin(request, line)
    let outcome: Outcome
    try {
      outcome = await decide(request)
    } catch (error) {
      attempt.cancel()
      if (error instanceof AppError) log.warn({ ...line, reason: error.code }, 'login not decided')
      throw error
    }
    if ('refusal' in outcome) {
      await untilRefusal(arrivedAt, outcome.waitedMs ?? 0)
      attempt.fail()
      log.info({ ...line, reason: outcome.refusal }, 'login refused')
      throw new AppError('InvalidCredentials', 'user name or password is wrong')
    }
    attempt.succeed()
    return { ...outcome, line: { ...line, user: outcome.account.name } }
  }

  function begin({ userName, address }: LoginRequest, line: object) {
    try {
      return guard.begin(userName, address)
    } catch (error) {
      log.info({ ...line, reason: (error as Error).message }, 'login refused')
      throw error
    }
  }

  return {
    async login(request, isExtended) {
      const { account, isExpired, line } = await verify(request, 'login')
      if (isExpired) {
        log.info({ ...line, reason: 'password expired' }, 'login refused')
        throw new AppError(
          'PasswordExpired',
          'the password has expired; set a new one with POST /v1/users/default/password/reset',
        )
      }
      // Together, since each commit waits for the disk.
      const { isFirstLogin, tokens } = transaction(() => ({
        isFirstLogin: history.record(account.name, addressGroup(request.address), clock.now()),
        tokens: sessions.create(account, request.address, isExtended),
      }))
      log.info({ ...line, role: account.role, isFirstLogin }, 'login')
      return { tokens, isFirstLogin }
    },
    check: async (request, purpose) => (await verify(request, purpose)).account,
  }
}

function describeRefusal(pamReason: string, account: Account | undefined, now: number): string {
  if (!account) return 'unknown user'
  if (account.locked) return 'account locked'
  if (account.expiresAt !== undefined && account.expiresAt <= now) return 'account expired'
  return pamReason
}
