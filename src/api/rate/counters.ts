import { createBoundedMap } from '../../base/bounded-map.ts'
import { createBucket, type Bucket, type Rate } from './bucket.ts'

/** The buckets of all clients for one resource. */
export interface RateCounter {
  /** Tokens of a full bucket. */
  readonly capacity: number
  /** Takes a token of this client: the tokens left, or -1 when there was none. */
  take(client: string, now: number): number
  /** Milliseconds until this client has a token. */
  waitMs(client: string, now: number): number
}

/** The buckets of all clients for all resources, bounded in number. Times are whole monotonic milliseconds. */
export interface RateCounters {
  /** Adds a resource. */
  open(rate: Rate): RateCounter
  /** Number of buckets in memory. */
  size(): number
}

interface Counter {
  readonly bucket: Bucket
  readonly mark: number
}

/**
 * At the maximum, a new bucket replaces a full one, or the fullest of a few. So a flood of new addresses removes its own
 * counters, and not the counter of a client that has emptied its bucket.
 * @param maximum number of counters, over all resources
 */
export function createRateCounters(maximum: number): RateCounters {
  const counters = createBoundedMap<Counter>({
    maximum,
    worth: ({ bucket, mark }, now) => bucket.emptiness(mark, now),
    // No request has to compare all of them.
    compared: 32,
  })
  let opened = 0

  return {
    open(rate) {
      const bucket = createBucket(rate)
      const resource = (opened += 1)
      const keyOf = (client: string) => `${resource} ${client}`
      const markOf = (key: string) => counters.get(key)?.mark ?? 0
      return {
        capacity: bucket.capacity,
        take(client, now) {
          const key = keyOf(client)
          const mark = bucket.take(markOf(key), now)
          if (mark === undefined) return -1
          counters.set(key, { bucket, mark }, now)
          return bucket.tokens(mark, now)
        },
        waitMs: (client, now) => bucket.waitMs(markOf(keyOf(client)), now),
      }
    },
    size: () => counters.size,
  }
}
