import type { GuessLimits } from './config.ts'
import { createBoundedMap, type BoundedMap } from '../base/bounded-map.ts'
import { networkFactor, type Client } from '../base/client.ts'

/** Failures of one key: a pair of user and client, or a client. */
export interface Counter {
  failures: number
  /** Attempts that have not ended; they count like failures, otherwise parallel guesses would all pass. */
  pending: number
  /** Monotonic milliseconds until which attempts of the key are refused. */
  blockedUntil: number
  /** Monotonic milliseconds from which the failures are forgotten; never before `blockedUntil`. */
  forgetAt: number
}

/** The numbers of failures from which an attempt has to wait, or is refused. */
export type LevelLimits = Omit<GuessLimits, 'userFailuresPerHour'>

export type LevelName = 'pair' | 'client' | 'network-pair' | 'network'

/** One way of counting failures: by user and client, or by client; and both again for the network around the client. */
export interface Level {
  readonly name: LevelName
  readonly counters: BoundedMap<Counter>
  /** From this number of failures on, attempts run one after the other. */
  readonly busyFrom: number
  /** Counts a failure: the key has to wait, or is locked. */
  fail(counter: Counter, now: number): void
}

/** The counter that an attempt is counted in. */
export interface CountedBy {
  readonly level: Level
  readonly key: string
}

/** The counter of a key, created when missing. It may be removed again until it counts a failure or an attempt. */
export function touch({ level: { counters }, key }: CountedBy, now: number): Counter {
  const counter = counters.get(key) ?? { failures: 0, pending: 0, blockedUntil: 0, forgetAt: 0 }
  counters.set(key, counter, now)
  return counter
}

const blockedWorth = 1e15

/**
 * A flood of new keys does not remove blocked keys. Of the others, the key with the oldest last failure is removed
 * first; if it were the one with the fewest failures, new keys would only remove each other.
 */
export function worthOf({ pending, blockedUntil, forgetAt }: Readonly<Counter>, now: number): number {
  if (pending > 0) return Infinity
  return Math.max(0, forgetAt - now) + (blockedUntil > now ? blockedWorth : 0)
}

/**
 * The levels of counting, by name.
 *
 * INVARIANT: failures + pending of a key never exceed the number of failures that locks it.
 */
export function createLevels(limits: LevelLimits): Readonly<Record<LevelName, Level>> {
  const lockMs = limits.lockMinutes * 60_000
  const make = (name: LevelName, lockAfter: number, delayAfter = Infinity, factor = 1): Level => ({
    name,
    counters: createBoundedMap({ maximum: limits.trackedKeys, worth: worthOf }),
    // Below the first delay, attempts may run in parallel; from there on each delay is enforced.
    busyFrom: Math.min(lockAfter, delayAfter) * factor,
    fail(counter, now) {
      counter.failures += 1
      counter.forgetAt = Math.ceil(now + lockMs)
      if (counter.failures >= lockAfter * factor) {
        counter.blockedUntil = counter.forgetAt
        counter.failures = 0
      } else if (counter.failures >= delayAfter * factor) {
        const doublings = Math.floor(counter.failures / factor) - delayAfter
        const delayMs = Math.min(limits.firstDelaySeconds * 2 ** doublings * 1_000, lockMs)
        counter.blockedUntil = Math.ceil(now + delayMs)
      }
    },
  })
  const { lockAfterFailures, delayAfterFailures, addressLockAfterFailures } = limits
  return {
    pair: make('pair', lockAfterFailures, delayAfterFailures),
    client: make('client', addressLockAfterFailures),
    'network-pair': make('network-pair', lockAfterFailures, delayAfterFailures, networkFactor),
    network: make('network', addressLockAfterFailures, Infinity, networkFactor),
  }
}

/**
 * The counters of an attempt by a user (hashed) from a client: those that always apply, and those that a trusted pair
 * skips.
 */
export function countersOf(
  levels: Readonly<Record<LevelName, Level>>,
  user: string,
  { name, network }: Client,
): { readonly own: readonly CountedBy[]; readonly around: readonly CountedBy[] } {
  return {
    own: [
      { level: levels.pair, key: `${name} ${user}` },
      { level: levels.client, key: name },
    ],
    around:
      network === undefined
        ? []
        : [
            { level: levels['network-pair'], key: `${network} ${user}` },
            { level: levels.network, key: network },
          ],
  }
}
