import { describe, expect, it } from 'vitest'
import { createRateCounters, type RateCounter } from '../../../src/api/rate/limit.ts'

const usual = { requestsPerSecond: 10, burst: 5 }

/** Takes tokens until there are none. */
function drain(counter: RateCounter, client: string, now: number): number {
  let taken = 0
  while (counter.take(client, now) >= 0) taken += 1
  return taken
}

describe('counters', () => {
  it('counters return the tokens left, and -1 when there was none', () => {
    const counter = createRateCounters(100).open({ requestsPerSecond: 2, burst: 1 })
    expect([1, 2, 3, 4].map(() => counter.take('a', 0))).toEqual([1, 0, -1, -1])
    expect(counter.waitMs('a', 0)).toBe(500)
    expect([counter.take('a', 499), counter.take('a', 500)]).toEqual([-1, 0])
    expect(counter.take('b', 500)).toBe(1)
  })

  it('counters of two resources are independent', () => {
    const counters = createRateCounters(100)
    const [one, other] = [counters.open(usual), counters.open({ requestsPerSecond: 2, burst: 5 })]
    expect([drain(one, 'a', 0), drain(other, 'a', 0)]).toEqual([50, 10])
  })

  it('counters are never more than the maximum, over all resources', () => {
    const counters = createRateCounters(1_000)
    const both = [counters.open(usual), counters.open(usual)]
    let most = 0
    for (let client = 0; client < 10_000; client += 1) {
      for (const each of both) each.take(String(client), 0)
      most = Math.max(most, counters.size())
    }
    expect(most).toBe(1_000)
  })

  it('counters of full buckets are removed while other clients send requests', () => {
    const counters = createRateCounters(10_000)
    const counter = counters.open(usual)
    for (let client = 0; client < 5_000; client += 1) counter.take(String(client), 0)
    expect(counters.size()).toBe(5_000)
    for (let asked = 0; asked <= 2_500; asked += 1) counter.take('late', 60_000 + asked * 1_000)
    expect(counters.size()).toBe(1)
  })

  it('counters of clients over the limit outlive a flood of any number of addresses', () => {
    const counters = createRateCounters(1_000)
    const counter = counters.open(usual)
    const other = counters.open(usual)
    const drained = Array.from({ length: 20 }, (_, index) => `drained ${index}`)
    for (const client of drained) drain(counter, client, 0)
    for (let client = 0; client < 100_000; client += 1) {
      counter.take(String(client), 0)
      other.take(String(client), 0)
    }
    expect(drained.filter((client) => counter.take(client, 0) >= 0)).toEqual([])
  })

  it('counters are removed one at a time, the fullest first', () => {
    const counters = createRateCounters(20)
    const [one, other] = [counters.open(usual), counters.open({ requestsPerSecond: 5, burst: 2 })]
    for (let client = 0; client < 5; client += 1) other.take(String(client), 0)
    for (let client = 0; client < 15; client += 1) {
      for (let asked = 0; asked < (client === 7 ? 1 : 2); asked += 1) one.take(String(client), 0)
    }
    other.take('one more', 0)
    expect(counters.size()).toBe(20)
    const others = Array.from({ length: 15 }, (_, client) => client).filter((client) => client !== 7)
    expect(new Set(others.map((client) => one.take(String(client), 0)))).toEqual(new Set([47]))
    expect(one.take('7', 0)).toBe(49)
  })

  it('counters work with a maximum of one', () => {
    const counters = createRateCounters(1)
    const counter = counters.open(usual)
    expect([counter.take('a', 0), counter.take('b', 0), counter.take('c', 0)]).toEqual([49, 49, 49])
    expect(counters.size()).toBe(1)
  })
})
