import type { AuthSettings } from './config.ts'
import { createBoundedMap, type BoundedMap } from '../base/bounded-map.ts'
import { networkFactor, type Client } from '../base/client.ts'

/** Failures of one key: a pair of user and client, or a client. */
export interface Counter {
  failures: number
  /** Attempts that have begun and not ended; they count like failures, or parallel guesses would all pass. */
  pending: number
  /** Monotonic milliseconds until which the key is refused. */
  blockedUntil: number
  /** Monotonic milliseconds from which the failures are forgotten; never before `blockedUntil`. */
  forgetAt: number
}

/** From how many failures on a try has to wait, and from how many on there is no try. */
export type LevelLimits = Omit<AuthSettings['guard'], 'userFailuresPerHour'>

export type LevelName = 'pair' | 'client' | 'network-pair' | 'network'

/** One way of counting failures: by user and client, by client, and both again for the network around the client. */
export interface Level {
  readonly name: LevelName
  readonly counters: BoundedMap<Counter>
  /** From here on tries come one after the other. */
  readonly busyFrom: number
  /** A failure: the key has to wait, or is locked. */
  fail(counter: Counter, now: number): void
}

/** What one try is counted by. */
export interface CountedBy {
  readonly level: Level
  readonly key: string
}

/** The counter of a key, made when missing. Until a failure or a try is counted in it, it may go again. */
export function touch({ level: { counters }, key }: CountedBy, now: number): Counter {
  const counter = counters.get(key) ?? { failures: 0, pending: 0, blockedUntil: 0, forgetAt: 0 }
  counters.set(key, counter, now)
  return counter
}

const blockedWorth = 1e15

/**
 * A flood of new keys does not wash away those that are blocked; of the others the one whose last failure is longest ago
 * goes first: were it the one with fewest failures, new keys would push out each other only.
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
    // Below the first delay tries may run side by side; from there on each delay is kept.
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

/** What a try of a user, as a code, from a client is counted by: what nothing passes, and what a trusted pair passes. */
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
