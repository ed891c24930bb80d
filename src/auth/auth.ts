import type { SystemEntry } from '../audit/audit.ts'
import { type SessionRecord, createSessionStore, endMarkFile } from './session-store.ts'
import { join } from 'node:path'
import type { Client, ClientOf } from '../base/client.ts'
import { watchForSleep } from '../system/sleep-watch.ts'
import { sampleEach } from '../base/sample.ts'
import type { FiguresOf, Ground, ResetPart, Room } from '../root/room.ts'
import type { about } from './about.ts'
import { createAccessTokens, deriveKeys } from './tokens.ts'
import { createAccounts } from './accounts.ts'
import { createAccountWatch, type AccountWatch } from './account-watch.ts'
import { createGuessGuard } from '../credentials/guess-guard.ts'
import { createGuessStore } from '../credentials/guess-store.ts'
import type { AuthSettings } from './config.ts'
import { createLoginHistory, createLogin, countLogins, createPasswordChange } from './login.ts'
import { createPam } from './pam.ts'
import { createPamSlots } from './pam-slots.ts'
import { authRoutes } from './routes.ts'
import { createSessionAccess } from './session-access.ts'
import { createSessions, type IsCallerGone, type Sessions } from './sessions.ts'
import type { Verbs } from '../verbs/call.ts'
import { createAccountKeys, type KeysChange } from './ssh-keys.ts'
import { changePassword } from './verbs.ts'

// Above this number, the record only has the number of sessions.
const mostNamed = 10

/** The trail entry for sessions that the daemon ended on its own: one record for any number of sessions. */
function endEntry(sessions: readonly SessionRecord[], reason: string): SystemEntry {
  const users = [...new Set(sessions.map(({ userName }) => userName))]
  const [first] = sessions
  const resourceName = users.length === 1 ? (users[0] ?? '') : ''
  const entry = { action: 'delete', kind: 'session', resourceName } as const
  if (first && sessions.length === 1)
    return { ...entry, resourceUid: first.uid, message: `End a session: ${reason}` }
  const uids = sessions.map(({ uid }) => uid).join(', ')
  const named = sessions.length <= mostNamed ? ` (${uids})` : ''
  return { ...entry, message: `End ${sessions.length} sessions: ${reason}${named}` }
}

interface AuthOptions {
  /** Runs commands that write outside the unit's sandbox. */
  readonly verbs: Verbs
  /** Called when an account has changed its SSH keys. */
  readonly onKeysChange: (change: KeysChange) => void
  /** Finds the client behind an address. */
  readonly clientOf: ClientOf
  /** Number of processor cores. */
  readonly cores: number
  /** Folder of passwd, shadow and group. */
  readonly etc?: string | undefined
}

/** The room of accounts, PAM and sessions. */
export interface Auth extends Room {
  /** The user of an access token; undefined for an invalid one. */
  readonly authenticate: Sessions['authenticate']
  /** The user of a cached access token, without a signature check. */
  readonly holderOf: Sessions['holderOf']
  /** Whether a user has logged in from exactly this client. */
  readonly isKnownClient: (client: Client) => boolean
  /** Registers a listener, called when sessions have ended or have lost their role. */
  onCallersGone(listener: (isGone: IsCallerGone) => void): void
  readonly sessions: Sessions
  readonly accountWatch: AccountWatch
  /** Ends every session, by a decision of the daemon. @returns whether that is on the disk */
  endSessions(reason: string): boolean
  /** The sessions, for a reset of the host. */
  readonly resetPart: ResetPart
}

/** Creates the parts of the room in the order of their dependencies. */
export async function createAuth(
  ground: Ground<{ readonly auth: AuthSettings }>,
  own: AuthOptions,
): Promise<Auth> {
  const { runner, database, stateDirectory, secrets, listTokens, record, clock, log, anonymousLog } = ground
  const { verbs, clientOf, cores, onKeysChange } = own
  const settings = ground.config.auth
  const etc = own.etc === undefined ? {} : { etc: own.etc }
  const { adminGroups, allowAnyShell } = settings
  const keys = deriveKeys(secrets)
  const listeners: ((isGone: IsCallerGone) => void)[] = []
  const accounts = createAccounts({ runner, adminGroups, allowAnyShell, markKey: keys.mark, ...etc })
  const sessions = createSessions({
    store: createSessionStore(database, join(stateDirectory, endMarkFile)),
    accessTokens: await createAccessTokens(keys.access),
    refreshKey: keys.refresh,
    clock,
    log,
    onCallersGone: (isGone) => listeners.forEach((tell) => tell(isGone)),
    onEnded: (ended, reason) => record(endEntry(ended, reason)),
    ...settings.tokens,
  })
  const history = createLoginHistory(database)
  const pam = createPam({
    runner,
    // The account changes its own password, which PAM proves.
    change: ({ userName, address, password, newPassword }) =>
      verbs.call(changePassword, { userName, address, password, newPassword }, { role: 'viewer' }),
    ...settings.pam,
  })
  const onSleep = (pid: number, report: () => void) => watchForSleep({ pid, quietMs, onSleep: report })
  const slots = createPamSlots({ cores, onSleep, ...settings.pam })
  const guard = createGuessGuard({
    clock,
    log,
    store: createGuessStore(database, settings.guard.trackedKeys),
    userKey: keys.guess,
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
      anonymousLog,
      refusalDelayMs: settings.refusalDelayMs,
    }),
  )
  const accountWatch = createAccountWatch({ accounts, sessions, clock, log, ...etc })
  const endSessions = (reason: string) => sessions.end(sessions.list(), reason, true)

  return {
    authenticate: sessions.authenticate,
    holderOf: sessions.holderOf,
    isKnownClient: history.isKnownClient,
    onCallersGone: (listener) => void listeners.push(listener),
    sessions,
    accountWatch,
    endSessions,
    resetPart: {
      describe: async () =>
        sessions.list().map(({ userName, address }) => `a session of ${userName} from ${address}`),
      clear: async () => endSessions('the host is reset'),
    },
    async routes(app) {
      await authRoutes(app, {
        login,
        passwordChange: createPasswordChange({ login, pam, sessions, log }),
        sessions: createSessionAccess({ sessions, accounts, clock }),
        accountKeys: createAccountKeys({
          database,
          verbs,
          login,
          sessions,
          clock,
          log,
          onChange: onKeysChange,
        }),
        listTokens,
        isKnownUser: accounts.isLocal,
        monotonic: () => clock.monotonic(),
      })
    },
    checks: [{ name: 'ended sessions stored', kind: 'note', holds: sessions.areEndsStored }],
    jobs: [
      {
        name: 'failed logins',
        schedule: '*/10 * * * * *',
        stuckAfterMs: 300_000,
        run: () => guard.flush(),
      },
      {
        name: 'accounts',
        schedule: '17 * * * * *',
        stuckAfterMs: 900_000,
        run: () => accountWatch.check(),
      },
    ],
    figures(): FiguresOf<typeof about.families> {
      const { working, children, waiting } = slots.figures()
      return {
        edgehostd_logins_total: sampleEach(
          logins(),
          ({ purpose, outcome }) => ({ purpose, outcome }),
          ({ count }) => count,
        ),
        edgehostd_pam_children: [
          { labels: { state: 'working' }, value: working },
          { labels: { state: 'asleep' }, value: children - working },
        ],
        edgehostd_pam_waiting_logins: waiting,
        edgehostd_sessions: sessions.list().length,
      }
    },
    // Accounts may have changed while the daemon was down. Only the local files are checked here; a directory that
    // hangs must not keep the port closed.
    prepare: () => accountWatch.start(),
    background: () => accountWatch.checkInBackground(),
    stop() {
      accountWatch.stop()
      guard.flush()
    },
  }
}

// After this time without processor use a PAM child is in its failure delay.
const quietMs = 100
