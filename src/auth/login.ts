import type { Database } from '../store/database.ts'
import type { Client, ClientOf } from '../base/client.ts'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { seeDisk } from '../errors/advice.ts'
import { AppError } from '../errors/app-error.ts'
import { authErrors } from './codes.ts'
import { isUnwritable } from '../store/unwritable.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { Lines } from '../system/anonymous-log.ts'
import type { Accounts, Account } from './accounts.ts'
import type { GuessGuard } from '../credentials/guess-guard.ts'
import type { Credentials, Pam } from './pam.ts'
import type { PamSlots } from './pam-slots.ts'
import type { Sessions, TokenPair } from './sessions.ts'
import type { credentialErrors } from '../credentials/codes.ts'
import { generalErrors } from '../errors/codes.ts'

// Limits of pamtester: it takes options from its arguments and one line from standard input, cut at a newline or NUL,
// at most PAM_MAX_RESP_SIZE (512 bytes) including the newline.
const longestUserNameBytes = 256
const longestPasswordBytes = 511

/** Whether this text can be the name of an account; other text never reaches a child process. */
export function isPossibleUserName(name: string): boolean {
  return (
    name !== '' &&
    !name.startsWith('-') &&
    // The colon separates fields of passwd(5), so no account has one.
    !/[/:]/.test(name) &&
    // eslint-disable-next-line no-control-regex -- searches for control characters
    !/[\u0000-\u001f\u007f-\u009f]/.test(name) &&
    name.isWellFormed() &&
    Buffer.byteLength(name) <= longestUserNameBytes
  )
}

/** The user name in an unvalidated body, as typed. Empty when no account can have it. */
export function typedUserName(body: unknown): string {
  const { username } = (typeof body === 'object' && body !== null ? body : {}) as { username?: unknown }
  if (typeof username !== 'string') return ''
  return isPossibleUserName(username) ? username : ''
}

/** Whether this password can be passed to PAM completely. */
export function isPossiblePassword(password: string): boolean {
  return (
    password !== '' &&
    // eslint-disable-next-line no-control-regex -- NUL, LF and CR end a line for pamtester
    !/[\u0000\n\r]/.test(password) &&
    password.isWellFormed() &&
    Buffer.byteLength(password) <= longestPasswordBytes
  )
}

/** The successful logins on this host and their clients. */
interface LoginHistory {
  /** Records a success; returns true for the first login of the account on this host. */
  record(userName: string, client: Client, now: number): boolean
  /**
   * Whether this user has logged in from this client; if none of the user's addresses in a network is known, from that
   * network.
   */
  isKnown(userName: string, client: Client): boolean
  /** Whether any user has logged in from exactly this client. */
  isKnownClient(client: Client): boolean
}

// Enough for every workplace of an operator; the oldest address is replaced.
const addressesPerUser = 32

export function createLoginHistory({ sql, transaction }: Database): LoginHistory {
  const insertAccount = sql.prepare('INSERT OR IGNORE INTO account (name, first_login_at) VALUES (?, ?)')
  const renewAddress = sql.prepare(
    'UPDATE account_address SET last_success_at = ? WHERE name = ? AND address = ?',
  )
  const putAddress = sql.prepare(
    'INSERT INTO account_address (name, address, last_success_at) VALUES (?, ?, ?)',
  )
  const trimAddresses = sql.prepare(
    `DELETE FROM account_address WHERE name = ?1 AND address NOT IN
       (SELECT address FROM account_address WHERE name = ?1 ORDER BY last_success_at DESC LIMIT ${addressesPerUser})`,
  )
  const removeAddress = sql.prepare('DELETE FROM account_address WHERE name = ? AND address = ?')
  const findAddress = sql.prepare('SELECT 1 FROM account_address WHERE name = ? AND address = ?')
  const findClient = sql.prepare('SELECT 1 FROM account_address WHERE address = ?')
  const isThere = (name: string, address: string) => findAddress.get(name, address) !== undefined
  return {
    record: (userName, { name: address, network }, now) =>
      transaction(() => {
        const name = userName.toLowerCase()
        if (renewAddress.run(now, name, address).changes === 0) {
          putAddress.run(name, address, now)
          // An entry for the whole network, from when it was not known to be on-link, is replaced.
          if (network !== undefined) removeAddress.run(name, network)
          trimAddresses.run(name)
        }
        return insertAccount.run(userName, now).changes > 0
      }),
    isKnown(userName, { name: address, network }) {
      const name = userName.toLowerCase()
      return isThere(name, address) || (network !== undefined && isThere(name, network))
    },
    isKnownClient: ({ name }) => findClient.get(name) !== undefined,
  }
}

interface LoginOptions {
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
type Refuse = (words?: string) => AppError

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

/**
 * The outcome of an attempt. `refused`: the password is wrong, or the account may not log in. `expired`: the password
 * is right, but must be changed first. `limited`: too many earlier failures. `busy`: too many logins at once. `failed`:
 * PAM or the directory did not answer.
 */
type LoginOutcome = 'accepted' | 'refused' | 'expired' | 'limited' | 'busy' | 'failed'

interface LoginFigures {
  /** Why the password was checked. */
  readonly purpose: 'login' | 'password-change'
  readonly outcome: LoginOutcome
  readonly count: number
}

const outcomes = {
  InvalidCredentials: 'refused',
  OldPasswordWrong: 'refused',
  PasswordExpired: 'expired',
  TooManyAttempts: 'limited',
  TooManyLogins: 'busy',
} as const satisfies Partial<Record<keyof (typeof authErrors & typeof credentialErrors), LoginOutcome>>

const none = () => ({ accepted: 0, refused: 0, expired: 0, limited: 0, busy: 0, failed: 0 })

/** Counts the outcomes of login attempts. */
export function countLogins(login: Login): { login: Login; figures: () => readonly LoginFigures[] } {
  const counts = { login: none(), 'password-change': none() }

  async function count<T>(purpose: LoginFigures['purpose'], result: Promise<T>): Promise<T> {
    try {
      const value = await result
      counts[purpose].accepted += 1
      return value
    } catch (error) {
      counts[purpose][outcomeOf(error)] += 1
      throw error
    }
  }

  return {
    login: {
      login: (...request) => count('login', login.login(...request)),
      check: (...request) => count('password-change', login.check(...request)),
    },
    figures: () =>
      (['login', 'password-change'] as const).flatMap((purpose) =>
        Object.entries(counts[purpose]).map(([outcome, count]) => ({
          purpose,
          outcome: outcome as LoginOutcome,
          count,
        })),
      ),
  }
}

function outcomeOf(error: unknown): LoginOutcome {
  const code = error instanceof AppError ? error.code : ''
  return code in outcomes ? outcomes[code as keyof typeof outcomes] : 'failed'
}

interface PasswordChangeOptions {
  readonly login: Login
  readonly pam: Pam
  readonly sessions: Sessions
  readonly log: Logger
}

export interface PasswordChange {
  /**
   * Changes a password and ends all sessions of the user. The old password is checked first, with the guard of logins,
   * so that this does not bypass the counters.
   * @param isLoggedIn a wrong old password is then a 400, otherwise the 401 of a login
   * @returns the number of ended sessions
   * @throws AppError BadRequest, OldPasswordWrong, InvalidCredentials, PasswordRefused and the errors of a login
   */
  change(request: LoginRequest & { readonly newPassword: string }, isLoggedIn: boolean): Promise<number>
}

export function createPasswordChange({ login, pam, sessions, log }: PasswordChangeOptions): PasswordChange {
  return {
    async change({ newPassword, ...request }, isLoggedIn) {
      if (!isPossiblePassword(newPassword)) {
        throw new AppError(
          generalErrors.BadRequest,
          'newPassword must have at most 511 bytes and no NUL, CR or LF',
          {
            details: { field: 'newPassword' },
          },
        )
      }
      const account = await login.check(request, 'password change', isLoggedIn ? oldPasswordWrong : undefined)
      const words = await pam.changePassword({ ...request, userName: account.name, newPassword })
      if (words !== undefined)
        throw new AppError(authErrors.PasswordRefused, words, { details: { field: 'newPassword' } })
      const ended = sessions.list().filter(({ userName }) => userName === account.name)
      sessions.end(ended, 'password changed')
      log.info({ ref: request.ref, user: account.name, address: request.address }, 'password changed')
      return ended.length
    },
  }
}

const oldPasswordWrong: Refuse = (words) =>
  new AppError(
    authErrors.OldPasswordWrong,
    words ? `oldPassword is wrong: ${words}` : 'oldPassword is wrong',
    {
      details: { field: 'oldPassword' },
    },
  )
