import { describe, expect, it } from 'vitest'
import { createBucket, type Rate } from '../../../src/api/rate/rows.ts'

const yearMs = 365 * 24 * 3_600_000

/** A bucket as one would explain it: a level that rises with time. In thousandths of a token, so exact. */
function createModel({ requestsPerSecond, burst }: Rate, emptyAt: number) {
  const rate = BigInt(requestsPerSecond)
  const full = rate * BigInt(burst) * 1_000n
  let level = 0n
  let last = BigInt(emptyAt)
  const fill = (now: number) => {
    const risen = level + (BigInt(now) - last) * rate
    level = risen > full ? full : risen
    last = BigInt(now)
  }
  return {
    tokens(now: number) {
      fill(now)
      return Number(level / 1_000n)
    },
    take(now: number) {
      fill(now)
      if (level < 1_000n) return false
      level -= 1_000n
      return true
    },
  }
}

/** Numbers from 0 to 1, the same ones each time (mulberry32). */
function createRandom(seed: number) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** The mark of a bucket that is empty at a moment. */
const emptyAt = ({ requestsPerSecond, burst }: Rate, now: number) => (now + 1_000 * burst) * requestsPerSecond

const rates: Rate[] = [
  { requestsPerSecond: 10, burst: 5 },
  { requestsPerSecond: 50, burst: 5 },
  { requestsPerSecond: 2, burst: 5 },
  { requestsPerSecond: 1, burst: 1 },
  { requestsPerSecond: 7, burst: 3 },
  { requestsPerSecond: 333, burst: 1 },
  { requestsPerSecond: 100_000, burst: 3_600 },
]

describe.each(rates)('a bucket of $requestsPerSecond × $burst', (rate) => {
  const bucket = createBucket(rate)

  it.each([1, 2, 3, 4, 5])('a bucket decides as its model over random arrivals (%i)', (seed) => {
    const random = createRandom(seed)
    const tokenMs = 1_000 / rate.requestsPerSecond
    let now = Math.floor(random() * yearMs)
    const model = createModel(rate, now)
    let mark = emptyAt(rate, now)
    let refused = 0
    for (let arrival = 0; arrival < 4_000; arrival += 1) {
      // Crowds, the steady rate, and pauses up to a full bucket.
      const kind = random()
      const isPause = kind < 1 / bucket.capacity
      // The first one meets an empty bucket.
      if (arrival > 0)
        now += Math.ceil(isPause ? random() * 1_500 * rate.burst : kind < 0.7 ? 0 : random() * 2 * tokenMs)
      expect(bucket.tokens(mark, now)).toBe(model.tokens(now))
      const next = bucket.take(mark, now)
      expect(next !== undefined).toBe(model.take(now))
      if (next === undefined) refused += 1
      else mark = next
    }
    expect(refused).toBeGreaterThan(0)
    expect(refused).toBeLessThan(4_000)
  })

  it('a bucket names the first millisecond at which a token is available again', () => {
    const empty = emptyAt(rate, 5_000)
    expect(bucket.tokens(empty, 5_000)).toBe(0)
    const wait = bucket.waitMs(empty, 5_000)
    expect(wait).toBe(Math.ceil(1_000 / rate.requestsPerSecond))
    expect(bucket.take(empty, 5_000 + wait - 1)).toBeUndefined()
    expect(bucket.take(empty, 5_000 + wait)).toBeDefined()
    expect(bucket.waitMs(empty, 5_000 + wait)).toBe(0)
  })

  it('a bucket goes from full to empty and back in as many seconds as the burst', () => {
    const empty = emptyAt(rate, 9_000)
    expect([bucket.emptiness(0, 9_000), bucket.emptiness(empty, 9_000)]).toEqual([0, 1])
    expect(bucket.emptiness(empty, 9_000 + 1_000 * rate.burst)).toBe(0)
    expect(bucket.emptiness(empty, 9_000 + 1_000 * rate.burst - 1)).toBeGreaterThan(0)
  })
})

it('a bucket accepts 50 at once, then 10 a second, and never more than 50 + 10 a second over any time', () => {
  const bucket = createBucket({ requestsPerSecond: 10, burst: 5 })
  let mark = 0
  const allowed: number[] = []
  for (let now = 0; now < 20_000; now += 1) {
    for (let each = 0; each < 3; each += 1) {
      const next = bucket.take(mark, now)
      if (next === undefined) continue
      mark = next
      allowed.push(now)
    }
  }
  expect(allowed.filter((now) => now < 20)).toHaveLength(50)
  expect(allowed.filter((now) => now >= 10_000 && now < 20_000)).toHaveLength(100)
})
