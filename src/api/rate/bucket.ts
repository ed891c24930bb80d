/** How many requests one client may send for one resource. Whole numbers. */
export interface Rate {
  /** The steady rate. */
  readonly requestsPerSecond: number
  /** Seconds of the steady rate that may be sent at once after a pause. */
  readonly burst: number
}

/**
 * A bucket of rate × burst tokens, filled at the rate; a request takes one. The state of a client is one number, its
 * mark: the time at which its bucket will be full again, in milliseconds × rate. In these units a token is 1000, all numbers
 * are whole, and the arithmetic is exact. A mark in the past, 0 for example, is a full bucket. This is the generic cell rate
 * algorithm (ITU-T I.371, Annex A).
 */
export interface Bucket {
  /** Tokens in a full bucket. */
  readonly capacity: number
  /** Takes a token: the new mark, or undefined when the bucket is empty. */
  take(mark: number, now: number): number | undefined
  /** Whole tokens left. */
  tokens(mark: number, now: number): number
  /** Milliseconds until there is a token. */
  waitMs(mark: number, now: number): number
  /** 0 for a full bucket, 1 for an empty one. */
  emptiness(mark: number, now: number): number
}

const unitsPerToken = 1_000

/** Times are whole monotonic milliseconds. */
export function createBucket({ requestsPerSecond, burst }: Rate): Bucket {
  const capacity = requestsPerSecond * burst
  const depth = capacity * unitsPerToken
  /** Units that are missing in the bucket. */
  const missing = (mark: number, now: number) => Math.max(0, mark - now * requestsPerSecond)
  return {
    capacity,
    take(mark, now) {
      const after = missing(mark, now) + unitsPerToken
      return after > depth ? undefined : now * requestsPerSecond + after
    },
    tokens: (mark, now) => Math.floor((depth - missing(mark, now)) / unitsPerToken),
    waitMs: (mark, now) =>
      Math.ceil(Math.max(0, missing(mark, now) + unitsPerToken - depth) / requestsPerSecond),
    emptiness: (mark, now) => missing(mark, now) / depth,
  }
}
