import { createBoundedMap } from '../base/bounded-map.ts'
import { createHmac, type KeyObject } from 'node:crypto'
import { seeDisk } from '../errors/advice.ts'
import { AppError } from '../errors/app-error.ts'
import { credentialErrors } from './codes.ts'
import { isUnwritable } from '../store/unwritable.ts'
import { isThisHost, type Client } from '../base/client.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { GuessLimits } from './config.ts'
import {
  countersOf,
  createLevels,
  touch,
  type CountedBy,
  type Counter,
  type LevelName,
} from './guess-levels.ts'
import type { GuessStore, KeptGuess } from './guess-store.ts'

/** Times of failures within a window, with a bounded number of keys and of times per key. */
interface FailureLog {
  /** Number of failures of the key within the window before `now`, monotonic milliseconds, plus unfinished attempts. */
  count(key: string, now: number): number
  /** When the oldest counted failure leaves the window; one second from now when unfinished attempts alone fill it. */
  nextFreeAt(key: string, now: number): number
  /** Counts the start of an attempt. */
  begin(key: string, now: number): void
  /** Counts the end of an attempt; `failedAt` is kept as a failure. */
  end(key: string, failedAt: number | undefined): void
  /** Restores failures that were stored, the oldest first. */
  restore(key: string, times: readonly number[], now: number): void
  /** Times of failures, the oldest first. */
  times(key: string): readonly number[]
  keys(): string[]
}

interface Entry {
  times: number[]
  pending: number
}

/** @param limits `perKey` is the number of failures above which the count no longer matters */
export function createFailureLog(limits: {
  maximumKeys: number
  perKey: number
  windowMs: number
}): FailureLog {
  const isRecent = (now: number) => (time: number) => time > now - limits.windowMs
  // The key with the fewest failures is replaced, so that a flood of names does not remove the one that matters.
  const entries = createBoundedMap<Entry>({
    maximum: limits.maximumKeys,
    worth: ({ times, pending }, now) => (pending > 0 ? Infinity : times.filter(isRecent(now)).length),
  })

  const recent = (key: string, now: number): readonly number[] => {
    const entry = entries.get(key)
    if (!entry) return []
    entry.times = entry.times.filter(isRecent(now))
    return entry.times
  }

  return {
    count: (key, now) => recent(key, now).length + (entries.get(key)?.pending ?? 0),
    nextFreeAt(key, now) {
      const times = recent(key, now)
      return times.length < limits.perKey || times[0] === undefined ? now + 1_000 : times[0] + limits.windowMs
    },
    begin(key, now) {
      const known = entries.get(key)
      if (known) known.pending += 1
      else entries.set(key, { times: [], pending: 1 }, now)
    },
    end(key, failedAt) {
      const entry = entries.get(key)
      if (!entry) return
      entry.pending -= 1
      if (failedAt !== undefined) {
        recent(key, failedAt)
        entry.times = [...entry.times, failedAt].slice(-limits.perKey)
      }
      if (entry.pending === 0 && entry.times.length === 0) entries.delete(key)
    },
    restore: (key, times, now) => entries.set(key, { times: times.slice(-limits.perKey), pending: 0 }, now),
    times: (key) => entries.get(key)?.times ?? [],
    keys: () => [...entries.entries()].map(([key]) => key),
  }
}

export interface GuessGuardOptions extends GuessLimits {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Logger
  /** Keeps failures and locks across restarts of the daemon. */
  readonly store: GuessStore
  /** The key for the hash of typed names. */
  readonly userKey: KeyObject
  /** Whether this user has logged in from this client before. */
  readonly isKnown: (userName: string, client: Client) => boolean
}

/** One login attempt; exactly one of its methods is called, once. */
export interface Attempt {
  /** The password was right: the counter of the pair is reset. Other counters stay. */
  succeed(): void
  /** The password was wrong. The failure is stored when this returns. */
  fail(): void
  /** PAM gave no answer: the attempt is not counted. */
  cancel(): void
}

/** Slows down and stops password guessing. User names that do not exist are counted like those that do. */
export interface GuessGuard {
  /**
   * Starts an attempt, before any child process is started.
   * @throws AppError TooManyAttempts with the seconds to wait
   */
  begin(userName: string, client: Client): Attempt
  /** Writes the current time, and everything that could not be written before; call it regularly and at the stop. */
  flush(): void
}

const hourMs = 3_600_000

/**
 * Three counters: the pair of user and client is delayed and then locked; a client is locked; a user is closed to
 * strangers, over all clients. The network around a client has the first two counters as well, with limits
 * `networkFactor` times as high. The locks of network and user can be caused by others. They do not apply to this host
 * and to a pair that has succeeded before, so that an attacker elsewhere or on the same network cannot lock an operator
 * out.
 *
 * The clock continues from its stored time, so that a restart ends no lock.
 */
export function createGuessGuard(options: GuessGuardOptions): GuessGuard {
  const { clock, log, store, userKey, isKnown } = options
  const lockMs = options.lockMinutes * 60_000
  const levels = createLevels(options)
  const users = createFailureLog({
    maximumKeys: options.trackedKeys,
    perKey: options.userFailuresPerHour,
    windowMs: hourMs,
  })
  const startedAt = clock.monotonic()
  const kept = store.read()
  const nowMs = () => Math.floor(kept.now + clock.monotonic() - startedAt)
  kept.kept.forEach(restore)
  let isBehind = false

  // The configuration may have changed, and a change of the file must not lock a user out for longer.
  function restore({ key: keptKey, failures, blockedUntil, forgetAt, times }: KeptGuess): void {
    const now = nowMs()
    const [, name = '', key = ''] = /^(\S+) (.*)$/s.exec(keptKey) ?? []
    if (name === 'user') {
      const recent = times.filter((time) => time > now - hourMs).map((time) => Math.min(time, now))
      if (recent.length > 0) users.restore(key, recent, now)
      return
    }
    const level = Object.values(levels).find((each) => each.name === name)
    if (!level || forgetAt <= now) return
    const counter = touch({ level, key }, now)
    counter.failures = failures
    counter.blockedUntil = Math.min(blockedUntil, Math.ceil(now + lockMs))
    counter.forgetAt = Math.min(forgetAt, Math.ceil(now + lockMs))
  }

  const keptCounter = (name: LevelName, key: string, counter: Readonly<Counter>): KeptGuess => ({
    key: `${name} ${key}`,
    failures: counter.failures,
    blockedUntil: counter.blockedUntil,
    forgetAt: counter.forgetAt,
    times: [],
  })
  const keptUser = (user: string): KeptGuess => {
    const times = users.times(user)
    return {
      key: `user ${user}`,
      failures: times.length,
      // Never read again, but a row that represents a lock is removed last.
      blockedUntil: times.length < options.userFailuresPerHour ? 0 : (times[0] ?? 0) + hourMs,
      forgetAt: (times.at(-1) ?? 0) + hourMs,
      times,
    }
  }

  // A full disk must neither let guesses through nor delay an answer: counting continues in memory, and `flush` writes
  // everything later.
  function write(work: () => void): void {
    try {
      work()
    } catch (error) {
      if (!isUnwritable(error)) throw error
      if (!isBehind)
        log.error(
          { err: error },
          `failed logins cannot be stored now; a restart before they are stored forgets them; ${seeDisk}`,
        )
      isBehind = true
    }
  }

  function everything(): KeptGuess[] {
    const counters = Object.values(levels).flatMap(({ name, counters }) =>
      [...counters.entries()]
        .filter(([, { forgetAt }]) => forgetAt > nowMs())
        .map(([key, counter]) => keptCounter(name, key, counter)),
    )
    return [
      ...counters,
      ...users
        .keys()
        .filter((user) => users.times(user).length > 0)
        .map(keptUser),
    ]
  }

  const refuse = (untilMs: number, message: string) => {
    const retryAfterSec = Math.max(1, Math.ceil((untilMs - nowMs()) / 1_000))
    return new AppError(credentialErrors.TooManyAttempts, message, { retryAfterSec })
  }

  // A key without failures for the time of a lock is forgotten, so that two typing errors a day never add up.
  function findCounter({ level: { counters }, key }: CountedBy): Readonly<Counter> | undefined {
    const counter = counters.get(key)
    if (!counter || counter.pending > 0 || nowMs() < counter.forgetAt) return counter
    counters.delete(key)
    return undefined
  }

  function refusalOf(counted: readonly CountedBy[], now: number): AppError | undefined {
    const found = counted.map((each) => ({ ...each, counter: findCounter(each) }))
    const blockedUntil = Math.max(...found.map(({ counter }) => counter?.blockedUntil ?? 0), 0)
    if (blockedUntil > now) return refuse(blockedUntil, 'too many failed logins; try again later')
    const busy = found.find(
      ({ level, counter }) =>
        counter && counter.pending > 0 && counter.failures + counter.pending >= level.busyFrom,
    )
    return busy && refuse(now + 1_000, busyMessages[busy.level.name])
  }

  function refusalOfUser(user: string, now: number): AppError | undefined {
    if (users.count(user, now) < options.userFailuresPerHour) return undefined
    return refuse(
      users.nextFreeAt(user, now),
      'too many failed logins of this user; log in from an address that has succeeded before',
    )
  }

  return {
    begin(typedName, client) {
      // Directories ignore case: they treat variants of a name as one user, so the counters do too.
      const userName = typedName.toLowerCase()
      // The typed text may be as long as a body, and may be a password in the wrong field; a counter is kept longer
      // than both.
      const user = createHmac('sha256', userKey).update(userName).digest('base64url')
      const now = nowMs()
      const { own, around } = countersOf(levels, user, client)
      const refusal = refusalOf(own, now)
      if (refusal) throw refusal
      const passable = refusalOf(around, now) ?? refusalOfUser(user, now)
      if (passable && !isThisHost(client) && !isKnown(userName, client)) throw passable

      const touched = [...own, ...around].map((each) => ({ ...each, counter: touch(each, now) }))
      for (const { counter } of touched) counter.pending += 1
      users.begin(user, now)
      const end = (failedAt?: number) => {
        for (const { counter } of touched) counter.pending -= 1
        users.end(user, failedAt)
      }
      return {
        succeed() {
          end()
          const pair = touched.find(({ level }) => level === levels.pair)
          if (!pair) return
          const { key, counter } = pair
          const isKept = counter.forgetAt > 0
          if (counter.pending === 0) levels.pair.counters.delete(key)
          else counter.failures = 0
          if (isKept) write(() => store.remove(`pair ${key}`))
        },
        fail() {
          const failedAt = nowMs()
          end(failedAt)
          for (const { level, counter } of touched) level.fail(counter, failedAt)
          const counted = touched.map(({ level, key, counter }) => keptCounter(level.name, key, counter))
          write(() => store.put([...counted, keptUser(user)], failedAt))
        },
        cancel: () => end(),
      }
    },
    flush() {
      write(() => {
        if (isBehind) store.put(everything(), nowMs())
        isBehind = false
        store.putTime(nowMs())
      })
    },
  }
}

const busyMessages: Readonly<Record<LevelName, string>> = {
  pair: 'other logins of this user from this address are still being checked',
  client: 'other logins from this address are still being checked',
  'network-pair': 'other logins of this user from this network are still being checked',
  network: 'other logins from this network are still being checked',
}
