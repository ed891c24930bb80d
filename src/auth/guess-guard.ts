import { hash } from 'node:crypto'
import { AppError } from '../errors/app-error.ts'
import { addressGroup, isLoopback } from '../system/address.ts'
import type { Clock } from '../system/clock.ts'
import { createFailureLog } from './failure-log.ts'
import { createCounters, type Counter } from './guess-counter.ts'

/** Bounds of the configuration. */
export interface GuessLimits {
  readonly delayAfterFailures: number
  readonly firstDelaySeconds: number
  readonly lockAfterFailures: number
  readonly lockMinutes: number
  readonly addressLockAfterFailures: number
  readonly userFailuresPerHour: number
  /** Counters kept in memory. */
  readonly trackedKeys: number
}

export interface GuessGuardOptions extends GuessLimits {
  readonly clock: Clock
  /** Whether this user has logged in from this address before. */
  readonly isKnownAddress: (userName: string, addressGroup: string) => boolean
}

/** One try; exactly one of its ends is called, once. */
export interface Attempt {
  /** The password was right: the pair's counter starts anew. Others are left alone. */
  succeed(): void
  /** The password was wrong. */
  fail(): void
  /** PAM gave no answer: nothing is learned. */
  cancel(): void
}

/** Slows and stops guessing. Counts are kept for user names that do not exist as for those that do. */
export interface GuessGuard {
  /**
   * Begins a try, before any child process is started.
   * @throws AppError TooManyAttempts with the seconds to wait
   */
  begin(userName: string, address: string): Attempt
}

/** What one try is counted by. */
interface Keys {
  readonly pair: string
  readonly group: string
  readonly user: string
  /** Whether a user under attack may still try from here. */
  readonly isTrusted: () => boolean
}

const hourMs = 3_600_000

/**
 * Three counters: the pair of user and address is delayed and then locked; an address alone (an IPv6 /64) is
 * locked; a user over all addresses is closed to strangers but never to loopback or to an address that has
 * succeeded before, so that an attacker elsewhere cannot lock an operator out.
 *
 * INVARIANT: failures + pending of a pair never exceed lockAfterFailures.
 */
export function createGuessGuard(options: GuessGuardOptions): GuessGuard {
  const { clock, delayAfterFailures, lockAfterFailures, addressLockAfterFailures, isKnownAddress } = options
  const lockMs = options.lockMinutes * 60_000
  const pairs = createCounters(options.trackedKeys)
  const addresses = createCounters(options.trackedKeys)
  const users = createFailureLog({
    maximumKeys: options.trackedKeys,
    perKey: options.userFailuresPerHour,
    windowMs: hourMs,
  })

  const refuse = (untilMs: number, message: string) => {
    const retryAfterSec = Math.max(1, Math.ceil((untilMs - clock.monotonic()) / 1_000))
    return new AppError('TooManyAttempts', message, { retryAfterSec })
  }

  // A key that has been quiet for the time of a lock is forgotten, so two slips a day never add up.
  function look(counters: typeof pairs, key: string): Readonly<Counter> | undefined {
    const counter = counters.peek(key)
    if (!counter || counter.pending > 0) return counter
    if (clock.monotonic() < Math.max(counter.blockedUntil, counter.lastFailureAt + lockMs)) return counter
    counters.remove(key)
    return undefined
  }

  function check({ pair, group, user, isTrusted }: Keys, now: number): void {
    const pairCounter = look(pairs, pair)
    const addressCounter = look(addresses, group)
    const blockedUntil = Math.max(pairCounter?.blockedUntil ?? 0, addressCounter?.blockedUntil ?? 0)
    if (blockedUntil > now) throw refuse(blockedUntil, 'too many failed logins; try again later')
    if (pairCounter && pairCounter.pending > 0 && isBusy(pairCounter)) {
      throw refuse(now + 1_000, 'other logins of this user from this address are still being checked')
    }
    if (addressCounter && addressCounter.failures + addressCounter.pending >= addressLockAfterFailures) {
      throw refuse(now + 1_000, 'other logins from this address are still being checked')
    }
    if (users.count(user, now) >= options.userFailuresPerHour && !isTrusted()) {
      throw refuse(
        users.nextFreeAt(user, now),
        'too many failed logins of this user; log in from an address that has succeeded before',
      )
    }
  }

  // Below the first delay tries may run side by side; from there on one after the other, so that each delay is kept.
  const isBusy = ({ failures, pending }: Readonly<Counter>) =>
    failures + pending >= Math.min(delayAfterFailures, lockAfterFailures)

  function failPair(counter: Counter): void {
    counter.failures += 1
    counter.lastFailureAt = clock.monotonic()
    if (counter.failures >= lockAfterFailures) {
      counter.blockedUntil = counter.lastFailureAt + lockMs
      counter.failures = 0
    } else if (counter.failures >= delayAfterFailures) {
      const delaySec = options.firstDelaySeconds * 2 ** (counter.failures - delayAfterFailures)
      counter.blockedUntil = counter.lastFailureAt + Math.min(delaySec * 1_000, lockMs)
    }
  }

  function failAddress(counter: Counter): void {
    counter.failures += 1
    counter.lastFailureAt = clock.monotonic()
    if (counter.failures < addressLockAfterFailures) return
    counter.blockedUntil = counter.lastFailureAt + lockMs
    counter.failures = 0
  }

  return {
    begin(typedName, address) {
      // Directories ignore case: variants of a name are one user to them, so they are one to the counters.
      const userName = typedName.toLowerCase()
      // What is typed may be as long as a body, and a counter outlives it.
      const user = hash('sha256', userName, 'base64')
      const group = addressGroup(address)
      const pair = `${group} ${user}`
      const now = clock.monotonic()
      check(
        { pair, group, user, isTrusted: () => isLoopback(address) || isKnownAddress(userName, group) },
        now,
      )
      const touched = [pairs.touch(pair, now), addresses.touch(group, now)] as const
      for (const counter of touched) counter.pending += 1
      users.begin(user, now)
      const end = (failedAt?: number) => {
        for (const counter of touched) counter.pending -= 1
        users.end(user, failedAt)
      }
      return {
        succeed() {
          end()
          const [pairCounter] = touched
          if (pairCounter.pending === 0) pairs.remove(pair)
          else pairCounter.failures = 0
        },
        fail() {
          end(clock.monotonic())
          failPair(touched[0])
          failAddress(touched[1])
        },
        cancel: () => end(),
      }
    },
  }
}
