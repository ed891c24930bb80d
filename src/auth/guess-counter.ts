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

/** Counters with a bounded number of keys: a flood of new ones does not wash away those that are blocked. */
export interface Counters {
  /** The counter of a key, without making one. */
  peek(key: string): Readonly<Counter> | undefined
  /** The counter of a key, made when missing and marked as touched. */
  touch(key: string, now: number): Counter
  remove(key: string): void
  entries(): Iterable<readonly [key: string, counter: Readonly<Counter>]>
  readonly size: number
}

export function createCounters(maximum: number): Counters {
  const counters = new Map<string, Counter>()

  // The one not touched for longest that is neither blocked nor in use; if there is none, a blocked one.
  function makeRoom(now: number): void {
    let second: string | undefined
    for (const [key, { pending, blockedUntil }] of counters) {
      if (pending > 0) continue
      if (blockedUntil <= now) {
        counters.delete(key)
        return
      }
      second ??= key
    }
    if (second !== undefined) counters.delete(second)
  }

  return {
    peek: (key) => counters.get(key),
    touch(key, now) {
      const known = counters.get(key)
      if (!known && counters.size >= maximum) makeRoom(now)
      const counter = known ?? { failures: 0, pending: 0, blockedUntil: 0, forgetAt: 0 }
      // A Map keeps the order of insertion: putting a key in again makes it the youngest.
      counters.delete(key)
      counters.set(key, counter)
      return counter
    },
    remove: (key) => void counters.delete(key),
    entries: () => counters.entries(),
    get size() {
      return counters.size
    },
  }
}
