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
  /** Counts one more resource. */
  open(rate: Rate): RateCounter
  /** Buckets kept now. */
  size(): number
}

interface Resource {
  readonly bucket: Bucket
  /** By client. */
  readonly marks: Map<string, number>
  /** Goes round and round. */
  cursor: MapIterator<[client: string, mark: number]>
}

// So many counters of a resource are no burden.
const few = 1_000
// Above that each request looks at this many for full buckets, which say nothing and need no counter: a flood does not
// leave its memory behind, and no request pays for all of them.
const swept = 2
// The fullest of so many gives way where there is no room.
const compared = 32

/**
 * Where there is no room, a full bucket gives way, or the fullest of a few: of the resource that has most of them. So
 * a flood of fresh addresses drops its own counters and not that of a client that has emptied its bucket.
 * @param maximum of counters, over all resources
 */
export function createRateCounters(maximum: number): RateCounters {
  const resources: Resource[] = []
  const size = () => resources.reduce((sum, { marks }) => sum + marks.size, 0)

  function makeRoom(now: number): void {
    const crowded = resources.reduce((most, each) => (each.marks.size > most.marks.size ? each : most))
    const fullest = sweep(crowded, compared, now)
    if (fullest !== undefined && size() >= maximum) crowded.marks.delete(fullest)
  }

  return {
    open(rate) {
      const bucket = createBucket(rate)
      const marks = new Map<string, number>()
      const resource = { bucket, marks, cursor: marks.entries() }
      resources.push(resource)
      return {
        capacity: bucket.capacity,
        take(client, now) {
          if (marks.size > few) sweep(resource, swept, now)
          const known = marks.get(client)
          const mark = bucket.take(known ?? 0, now)
          if (mark === undefined) return -1
          if (known === undefined && size() >= maximum) makeRoom(now)
          marks.set(client, mark)
          return bucket.tokens(mark, now)
        },
        waitMs: (client, now) => bucket.waitMs(marks.get(client) ?? 0, now),
      }
    },
    size,
  }
}

/** Drops those of the next counters that are full. Gives the fullest of the others. */
function sweep(resource: Resource, count: number, now: number): string | undefined {
  const { bucket, marks } = resource
  let fullest: string | undefined
  let least = Infinity
  for (let looked = 0; looked < count; looked += 1) {
    const next = resource.cursor.next()
    if (next.done) {
      resource.cursor = marks.entries()
      continue
    }
    const [client, mark] = next.value
    const emptiness = bucket.emptiness(mark, now)
    if (emptiness === 0) marks.delete(client)
    else if (emptiness < least) [fullest, least] = [client, emptiness]
  }
  return fullest
}
