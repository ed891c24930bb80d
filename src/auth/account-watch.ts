import { watch } from 'node:fs'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { Account, Accounts } from './accounts.ts'
import type { SessionRecord } from './session-store.ts'
import type { Sessions } from './sessions.ts'

/** Ends sessions whose account is locked, expired, gone or no longer what it was. */
export interface AccountWatch {
  /** Looks at every account that has a session. */
  check(): Promise<void>
  /** Looks whenever a local account file changes, until stopped. */
  start(): void
  stop(): void
}

export interface AccountWatchOptions {
  readonly accounts: Accounts
  readonly sessions: Sessions
  readonly clock: Clock
  readonly log: Logger
  /** Folder of passwd, shadow and group. */
  readonly etc?: string
}

const watchedFiles = new Set(['passwd', 'shadow', 'group', 'nsswitch.conf'])
// useradd and friends replace several files one after the other.
const settleMs = 200
// Rounds come every minute, see the table of jobs.
const longestWaitMs = 120_000

/** Why a session may not go on with this account; nothing when it may. */
export function reasonToEnd(
  session: SessionRecord,
  account: Account | undefined,
  now: number,
): string | undefined {
  if (!account) return 'account deleted'
  if (account.locked) return 'account locked'
  if (account.expiresAt !== undefined && account.expiresAt <= now) return 'account expired'
  if (account.mark !== session.accountMark) return 'password changed'
  if (session.role === 'admin' && account.role !== 'admin' && account.isRoleKnown)
    return 'left the administrators'
  return undefined
}

export function createAccountWatch({
  accounts,
  sessions,
  clock,
  log,
  etc = '/etc',
}: AccountWatchOptions): AccountWatch {
  let isStopped = false
  let expiryTimer: NodeJS.Timeout | undefined
  let stopWatching = (): void => undefined

  /** @returns when the account expires by itself, if it ever does */
  async function checkUser(userName: string): Promise<number> {
    let account: Account | undefined
    try {
      account = await accounts.read(userName)
    } catch (error) {
      // A directory that does not answer has not said that the account is gone.
      log.warn(
        { err: error, user: userName },
        'the account could not be looked up; its sessions go on; see what NSS says with: getent passwd <user>',
      )
      return Infinity
    }
    for (const session of sessions.list().filter((each) => each.userName === userName)) {
      const reason = reasonToEnd(session, account, clock.now())
      if (reason) sessions.end([session], reason, true)
    }
    return account?.expiresAt ?? Infinity
  }

  async function check(): Promise<void> {
    sessions.expire()
    const names = new Set(sessions.list().map(({ userName }) => userName))
    // One after the other, since a directory needs child processes for each; local ones first, they need none.
    const inOrder = [...names].sort((a, b) => Number(accounts.isLocal(b)) - Number(accounts.isLocal(a)))
    let nextExpiry = Infinity
    for (const name of inOrder) nextExpiry = Math.min(nextExpiry, await checkUser(name))
    checkAt(nextExpiry)
  }

  // An account expires on a day; no file changes then. Beyond a minute the next round is early enough to know.
  function checkAt(time: number): void {
    clearTimeout(expiryTimer)
    const waitMs = time - clock.now()
    if (!isStopped && waitMs > 0 && waitMs <= longestWaitMs) expiryTimer = setTimeout(checkNow, waitMs)
  }

  // By itself, so nobody else would hear of its error; an unheard one ends the process.
  function checkNow(): void {
    check().catch((error: unknown) =>
      log.error(
        { err: error },
        'accounts could not be looked at; see what NSS says with: getent passwd root; ls -l /etc/passwd /etc/group',
      ),
    )
  }

  const warn = (error: unknown) =>
    log.warn(
      { err: error },
      'account files are not watched; they are looked at every minute; make room for watches with: sysctl fs.inotify.max_user_instances=1024',
    )

  return {
    check,
    start() {
      let timer: NodeJS.Timeout | undefined
      const onChange = (_event: string, file: string | null) => {
        if (file !== null && !watchedFiles.has(file)) return
        timer ??= setTimeout(() => {
          timer = undefined
          checkNow()
        }, settleMs)
      }
      try {
        // The folder, not the files: they are replaced, not written.
        const watcher = watch(etc, onChange).on('error', warn)
        stopWatching = () => {
          clearTimeout(timer)
          watcher.close()
        }
      } catch (error) {
        // inotify(7): a host may have used up its watches.
        warn(error)
      }
    },
    stop() {
      isStopped = true
      clearTimeout(expiryTimer)
      stopWatching()
    },
  }
}
