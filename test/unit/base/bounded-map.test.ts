import { describe, expect, it } from 'vitest'
import { createBoundedMap } from '../../../src/base/bounded-map.ts'

/** The worth of a value is the value; a negative value is worth the time until its absolute value. */
const open = (maximum: number, compared?: number) =>
  createBoundedMap<number>({
    maximum,
    worth: (value, now) => (value < 0 ? Math.max(0, -value - now) : value),
    ...(compared === undefined ? {} : { compared }),
  })
const keys = (map: ReturnType<typeof open>) => [...map.entries()].map(([key]) => key)

describe('a bounded map', () => {
  it('a full map removes the entry of least worth for a new one', () => {
    const map = open(3)
    for (const [key, worth] of [
      ['a', 5],
      ['b', 2],
      ['c', 9],
      ['d', 1],
    ] as const)
      map.set(key, worth, 0)
    expect(keys(map)).toEqual(['a', 'c', 'd'])
    map.set('e', 3, 0)
    expect(keys(map)).toEqual(['a', 'c', 'e'])
  })

  it('a full map removes no entry when a known key is set', () => {
    const map = open(2)
    map.set('a', 1, 0)
    map.set('b', 1, 0)
    map.set('b', 7, 0)
    expect([...map.entries()]).toEqual([
      ['a', 1],
      ['b', 7],
    ])
  })

  it('a map never removes an entry of full worth, even beyond its maximum', () => {
    const map = open(2)
    for (const key of ['a', 'b', 'c']) map.set(key, Infinity, 0)
    expect(map.size).toBe(3)
    for (let count = 0; count < 10; count += 1) map.set(`key ${count}`, 1, 0)
    expect(keys(map)).toEqual(expect.arrayContaining(['a', 'b', 'c']))
  })

  it('later calls remove entries that have lost their worth', () => {
    const map = open(10_000)
    for (let count = 0; count < 5_000; count += 1) map.set(`key ${count}`, -10, 0)
    expect(map.size).toBe(5_000)
    for (let count = 0; count <= 2_500; count += 1) map.set('late', 1, 10)
    expect(keys(map)).toEqual(['late'])
  })

  it('a map keeps 20 valuable entries through a flood, whether all entries are compared or a few', () => {
    for (const compared of [undefined, 32]) {
      const map = open(1_000, compared)
      for (let count = 0; count < 20; count += 1) map.set(`kept ${count}`, 2, 0)
      for (let count = 0; count < 20_000; count += 1) map.set(`key ${count}`, 1, 0)
      expect(map.size).toBe(1_000)
      expect(keys(map).filter((key) => key.startsWith('kept'))).toHaveLength(20)
    }
  })
})
