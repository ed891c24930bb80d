import type { Audit } from '../audit/audit.ts'
import type { ContinueTokens } from '../lists/continue-token.ts'
import type { Database } from '../store/database.ts'
import type { Client, ClientOf } from '../base/client.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { Lines } from '../system/stranger-log.ts'
import type { CommandRunner } from '../system/runner.ts'
import { watchForSleep } from '../system/sleep-watch.ts'
import type { AccessTokens } from './access-token.ts'
import { createAccounts } from './accounts.ts'
import { createAccountWatch, type AccountWatch } from './account-watch.ts'
import { createGuessGuard, type GuessGuard, type GuessLimits } from './guess-guard.ts'
import { createGuessStore } from './guess-store.ts'
import type { AuthKeys } from './keys.ts'
import { createLoginHistory } from './login-history.ts'
import { createLogin } from './login.ts'
import { countLogins, type LoginFigures } from './login-counts.ts'
import { createPam } from './pam.ts'
import { createPamSlots, type PamFigures, type PamLimits } from './pam-slots.ts'
import { createPasswordChange } from './password-change.ts'
import type { AuthRoutesOptions } from './routes.ts'
import { createSessionAccess } from './session-access.ts'
import { endEntry } from './session-entry.ts'
import { createSessionStore } from './session-store.ts'
import { createSessions, type IsCallerGone, type Sessions, type TokenLifetimes } from './sessions.ts'

/** What an administrator may choose; the section `auth` of the configuration. */
export interface AuthSettings {
  readonly adminGroups: readonly string[]
  readonly allowAnyShell: boolean
  readonly refusalDelayMs: number
  readonly pam: PamLimits & { readonly service: string; readonly program: string; readonly timeoutMs: number }
  readonly guard: GuessLimits
  readonly tokens: TokenLifetimes
}

export interface AuthOptions {
  readonly settings: AuthSettings
  readonly runner: CommandRunner
  /** Runs what must write outside the unit's sandbox. */
  readonly privileged: CommandRunner
  readonly database: Database
  readonly keys: AuthKeys
  readonly accessTokens: AccessTokens
  readonly listTokens: ContinueTokens
  /** Records what the daemon decides by itself. */
  readonly record: Audit['record']
  /** Told when sessions have ended or have lost their role. */
  readonly onCallersGone?: (isGone: IsCallerGone) => void
  /** Tells who counts as one client. */
  readonly clientOf: ClientOf
  /** Cores of the machine. */
  readonly cores: number
  readonly clock: Clock
  readonly log: Logger
  /** Takes the lines about refusals; without it the log does. */
  readonly strangers?: Lines
  /** Folder of passwd, shadow and group. */
  readonly etc?: string
}

/** The room, put together. */
export interface Auth {
  readonly routes: AuthRoutesOptions
  readonly sessions: Sessions
  readonly accountWatch: AccountWatch
  /** Tries since the start, by outcome. */
  readonly logins: () => readonly LoginFigures[]
  readonly pam: () => PamFigures
  /** Whether a user has logged in from exactly there. */
  readonly isKnownClient: (client: Client) => boolean
  /** Failures and locks, which outlive the daemon. */
  readonly guesses: Pick<GuessGuard, 'keep'>
}

/** Builds the parts of the room in the order in which they need each other. */
export function createAuth(options: AuthOptions): Auth {
  const { settings, runner, privileged, database, keys, accessTokens, clientOf, clock, log } = options
  const etc = options.etc === undefined ? {} : { etc: options.etc }
  const { adminGroups, allowAnyShell } = settings
  const accounts = createAccounts({ runner, adminGroups, allowAnyShell, markKey: keys.mark, ...etc })
  const sessions = createSessions({
    store: createSessionStore(database),
    accessTokens,
    refreshKey: keys.refresh,
    clock,
    log,
    ...(options.onCallersGone ? { onCallersGone: options.onCallersGone } : {}),
    onEnded: (ended, reason) => options.record(endEntry(ended, reason)),
    ...settings.tokens,
  })
  const history = createLoginHistory(database)
  const pam = createPam({ runner, privileged, ...settings.pam })
  const onSleep = (pid: number, told: () => void) => watchForSleep({ pid, quietMs, onSleep: told })
  const slots = createPamSlots({ cores: options.cores, onSleep, ...settings.pam })
  const guard = createGuessGuard({
    ...{ clock, log, store: createGuessStore(database, settings.guard.trackedKeys), userKey: keys.guess },
    isKnown: history.isKnown,
    ...settings.guard,
  })
  const { login, figures: logins } = countLogins(
    createLogin({
      pam,
      slots,
      guard,
      accounts,
      sessions,
      history,
      clientOf,
      transaction: database.transactionBeforeNext,
      clock,
      log,
      strangers: options.strangers ?? log,
      refusalDelayMs: settings.refusalDelayMs,
    }),
  )
  return {
    routes: {
      login,
      passwordChange: createPasswordChange({ login, pam, sessions, log }),
      sessions: createSessionAccess({ sessions, accounts, clock }),
      listTokens: options.listTokens,
      isKnownUser: accounts.isLocal,
      monotonic: () => clock.monotonic(),
    },
    sessions,
    accountWatch: createAccountWatch({ accounts, sessions, clock, log, ...etc }),
    logins,
    pam: slots.figures,
    isKnownClient: history.isKnownClient,
    guesses: guard,
  }
}

// After this long without processor time a PAM child is in its failure delay.
const quietMs = 100
