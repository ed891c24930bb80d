import { networkFactor, type Client } from '../base/client.ts'
import { createCounters, type Counter, type Counters } from './guess-counter.ts'

/** From how many failures on a try has to wait, and from how many on there is no try. */
export interface LevelLimits {
  readonly delayAfterFailures: number
  readonly firstDelaySeconds: number
  readonly lockAfterFailures: number
  readonly lockMinutes: number
  readonly addressLockAfterFailures: number
  /** Counters kept in memory, of each level. */
  readonly trackedKeys: number
}

export type LevelName = 'pair' | 'client' | 'network-pair' | 'network'

/** One way of counting failures: by user and client, by client, and both again for the network around the client. */
export interface Level {
  readonly name: LevelName
  readonly counters: Counters
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

/**
 * The levels of counting, by name.
 *
 * INVARIANT: failures + pending of a key never exceed the number of failures that locks it.
 */
export function createLevels(limits: LevelLimits): Readonly<Record<LevelName, Level>> {
  const lockMs = limits.lockMinutes * 60_000
  const make = (name: LevelName, lockAfter: number, delayAfter = Infinity, factor = 1): Level => ({
    name,
    counters: createCounters(limits.trackedKeys),
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
