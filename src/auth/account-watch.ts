import { watch } from 'node:fs'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { Accounts } from './accounts.ts'
import type { Account } from './account.ts'
import { needsNss, reasonInFiles, reasonToEnd } from './end-reason.ts'
import type { SessionRecord } from './session-store.ts'
import type { Sessions } from './sessions.ts'

/** Ends sessions whose account is locked, expired, gone or no longer what it was. */
export interface AccountWatch {
  /**
   * Ends what the local files alone rule out and looks again whenever one of them changes, until stopped. Once it
   * has returned no request can come in for such a session; no program is waited for.
   */
  start(): void
  /**
   * Looks at every account that has a session: at once into the local files, then with questions to NSS, which take
   * less than a minute however many there are.
   */
  check(): Promise<void>
  /** The same without a caller that waits; errors go to the journal. */
  checkInBackground(): void
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

const watchedFiles = new Set(['passwd', 'shadow', 'group', 'shells', 'nsswitch.conf'])
// useradd and friends replace several files one after the other.
const settleMs = 200
// Rounds come every minute, see the table of jobs.
const longestWaitMs = 120_000
// A question to a silent directory takes 10 s; after this time of a round no other one begins.
const roundMs = 30_000
const mostQuestions = 4

export function createAccountWatch({
  accounts,
  sessions,
  clock,
  log,
  etc = '/etc',
}: AccountWatchOptions): AccountWatch {
  let isStopped = false
  let round: Promise<void> | undefined
  // Users of whom NSS could not tell -> when, monotonic milliseconds.
  const silentAt = new Map<string, number>()
  let expiryTimer: NodeJS.Timeout | undefined
  let nextExpiry = Infinity
  let stopWatching = (): void => undefined

  /** @returns the sessions that continue */
  function endBy(
    reasonOf: (session: SessionRecord) => string | undefined,
    own: readonly SessionRecord[],
  ): readonly SessionRecord[] {
    const byReason = Map.groupBy(own, reasonOf)
    for (const [reason, ended] of byReason) if (reason) sessions.end(ended, reason, true)
    return byReason.get(undefined) ?? []
  }

  /** @returns the users about whom NSS has to be asked */
  function lookIntoFiles(): string[] {
    sessions.expire()
    clearTimeout(expiryTimer)
    nextExpiry = Infinity
    let files: ReturnType<Accounts['readLocal']>
    try {
      files = accounts.readLocal()
    } catch (error) {
      log.warn(
        { err: error },
        'local accounts cannot be read, all sessions continue; see ls -l /etc/passwd /etc/group',
      )
      return []
    }
    const unsettled: string[] = []
    for (const [userName, own] of Map.groupBy(sessions.list(), (session) => session.userName)) {
      const local = files.find(userName)
      const left = endBy((session) => reasonInFiles(session, local, clock.now()), own)
      expectExpiry(local?.expiresAt)
      if (left.some((session) => needsNss(session, local))) unsettled.push(userName)
    }
    return unsettled
  }

  async function askAbout(userName: string): Promise<void> {
    // A session that begins or is renewed in the meantime knows its account better than this answer.
    const known = new Set(sessions.list().filter((session) => session.userName === userName))
    let account: Account | undefined
    try {
      account = await accounts.read(userName)
    } catch (error) {
      silentAt.set(userName, clock.monotonic())
      // A directory that does not answer has not said that the account is gone.
      log.warn(
        { err: error, user: userName },
        'the account could not be looked up; its sessions continue; see what NSS says with: getent passwd <user>',
      )
      return
    }
    silentAt.delete(userName)
    const own = sessions.list().filter((session) => known.has(session))
    endBy((session) => reasonToEnd(session, account, clock.now()), own)
    expectExpiry(account?.expiresAt)
  }

  /** A few at a time, so that a silent directory holds up neither the answers of another one nor the next round. */
  async function askRound(userNames: readonly string[]): Promise<void> {
    const until = clock.monotonic() + roundMs
    for (const name of silentAt.keys()) if (!userNames.includes(name)) silentAt.delete(name)
    // Users of whom NSS did not answer come last, the one not asked for longest first.
    const order = (name: string) => silentAt.get(name) ?? -1
    const queue = [...userNames].sort((a, b) => order(a) - order(b))
    const work = async () => {
      while (!isStopped && clock.monotonic() < until) {
        const name = queue.shift()
        if (name === undefined) return
        await askAbout(name)
      }
    }
    await Promise.all(Array.from({ length: mostQuestions }, work))
    if (queue.length > 0 && !isStopped)
      log.warn(
        { accounts: queue.length },
        'the directory of accounts is too slow to be asked about all of them in one round; their sessions continue; see how long it takes with: getent passwd <user>',
      )
  }

  async function check(): Promise<void> {
    const unsettled = lookIntoFiles()
    if (unsettled.length > 0)
      round ??= askRound(unsettled).finally(() => {
        round = undefined
      })
    await round
  }

  // An account expires on a day; no file changes then. Beyond a minute the next round is early enough to know.
  function expectExpiry(time = Infinity): void {
    const waitMs = time - clock.now()
    if (isStopped || time >= nextExpiry || waitMs <= 0 || waitMs > longestWaitMs) return
    nextExpiry = time
    clearTimeout(expiryTimer)
    expiryTimer = setTimeout(checkInBackground, waitMs)
  }

  function checkInBackground(): void {
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

  function startWatching(): void {
    let timer: NodeJS.Timeout | undefined
    const onChange = (_event: string, file: string | null) => {
      if (file !== null && !watchedFiles.has(file)) return
      timer ??= setTimeout(() => {
        timer = undefined
        checkInBackground()
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
  }

  return {
    start() {
      // In this order, so that no change falls in between.
      startWatching()
      lookIntoFiles()
    },
    check,
    checkInBackground,
    stop() {
      isStopped = true
      clearTimeout(expiryTimer)
      stopWatching()
    },
  }
}
