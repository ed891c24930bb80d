import { watch } from 'node:fs'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { Accounts, Account } from './accounts.ts'
import { needsNss, reasonInFiles, reasonToEnd, type Sessions } from './sessions.ts'
import type { SessionRecord } from './session-store.ts'

/** Ends sessions whose account is locked, expired, deleted or replaced. */
export interface AccountWatch {
  /**
   * Ends sessions that the local files alone rule out, and checks again whenever a file changes, until stopped. When it
   * returns, no such session can be used anymore; it waits for no program.
   */
  start(): void
  /**
   * Checks every account that has a session: first in the local files, then with NSS queries, which take less than a
   * minute for any number of accounts.
   */
  check(): Promise<void>
  /** Runs `check` without waiting; errors go to the journal. */
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
// useradd and similar programs replace several files one after the other.
const settleMs = 200
// The job `accounts` starts a round every minute.
const longestWaitMs = 120_000
// A query to a directory that does not answer takes 10 s; after this time of a round no further query starts.
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
  // User -> monotonic milliseconds of the last NSS query that failed.
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

  /** @returns the users that need an NSS query */
  function checkFiles(): string[] {
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
    // A session that starts or is renewed during the query has newer data on its account than this answer.
    const known = new Set(sessions.list().filter((session) => session.userName === userName))
    let account: Account | undefined
    try {
      account = await accounts.read(userName)
    } catch (error) {
      silentAt.set(userName, clock.monotonic())
      // A directory that does not answer has not reported the account as deleted.
      log.warn(
        { err: error, user: userName },
        'the account could not be looked up; its sessions continue; see what NSS returns with: getent passwd <user>',
      )
      return
    }
    silentAt.delete(userName)
    const own = sessions.list().filter((session) => known.has(session))
    endBy((session) => reasonToEnd(session, account, clock.now()), own)
    expectExpiry(account?.expiresAt)
  }

  /**
   * Runs a few queries in parallel, so that a directory that does not answer delays neither the answers of another one
   * nor the next round.
   */
  async function askRound(userNames: readonly string[]): Promise<void> {
    const until = clock.monotonic() + roundMs
    for (const name of silentAt.keys()) if (!userNames.includes(name)) silentAt.delete(name)
    // Users whose last query failed come last, the one not queried for longest first.
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
        'the directory of accounts is too slow to query all accounts in one round; the sessions of the other accounts continue; see how long it takes with: getent passwd <user>',
      )
  }

  async function check(): Promise<void> {
    const unsettled = checkFiles()
    if (unsettled.length > 0)
      round ??= askRound(unsettled).finally(() => {
        round = undefined
      })
    await round
  }

  // An account expires on a day, without a change of a file. Beyond a minute the next round is early enough.
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
        'accounts could not be checked; see what NSS returns with: getent passwd root; ls -l /etc/passwd /etc/group',
      ),
    )
  }

  const warn = (error: unknown) =>
    log.warn(
      { err: error },
      'account files are not watched; they are checked every minute; allow more watches with: sysctl fs.inotify.max_user_instances=1024',
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
      // Watches the folder, not the files: programs replace the files instead of writing them.
      const watcher = watch(etc, onChange).on('error', warn)
      stopWatching = () => {
        clearTimeout(timer)
        watcher.close()
      }
    } catch (error) {
      // inotify(7): the watches of a host may be used up.
      warn(error)
    }
  }

  return {
    start() {
      // Watch first, so that no change is missed in between.
      startWatching()
      checkFiles()
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
