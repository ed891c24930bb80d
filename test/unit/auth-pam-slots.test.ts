import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createPamSlots, type PamSlotsOptions } from '../../src/auth/pam-slots.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function setUp(options: Partial<PamSlotsOptions> = {}) {
  const slots = createPamSlots({ cores: 2, maximumChildren: 5, queueLength: 3, ...options })
  const running: (() => void)[] = []
  let started = 0
  const run = () =>
    slots.run(() => {
      started += 1
      return new Promise<void>((done) => running.push(done))
    })
  const settle = () => vi.advanceTimersByTimeAsync(0)
  return { slots, run, running, settle, started: () => started }
}

const full = { code: 'TooManyLogins', retryAfterSec: 2 }

describe('createPamSlots', () => {
  it('runs as many at once as there are cores, the next one when one has ended', async () => {
    const { run, running, settle, started } = setUp()
    for (let count = 0; count < 3; count += 1) void run()
    await settle()
    expect(started()).toBe(2)
    running[0]?.()
    await settle()
    expect(started()).toBe(3)
  })

  it('no longer counts a child that is older than 1 s: it only sleeps', async () => {
    const { run, started } = setUp()
    for (let count = 0; count < 4; count += 1) void run()
    await vi.advanceTimersByTimeAsync(999)
    expect(started()).toBe(2)
    await vi.advanceTimersByTimeAsync(1)
    expect(started()).toBe(4)
  })

  it('starts no child beyond the maximum, sleeping ones included', async () => {
    const { run, running, settle, started } = setUp({ queueLength: 10 })
    for (let count = 0; count < 8; count += 1) void run()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(started()).toBe(5)
    running[0]?.()
    await settle()
    expect(started()).toBe(6)
  })

  it('refuses at once when the queue is full', async () => {
    const { run } = setUp()
    for (let count = 0; count < 5; count += 1) void run()
    await expect(run()).rejects.toMatchObject(full)
  })

  it('refuses whatever finds no slot when the queue is 0 long', async () => {
    const { run, settle } = setUp({ queueLength: 0 })
    void run()
    void run()
    await settle()
    await expect(run()).rejects.toMatchObject(full)
  })

  it('frees the slot of work that fails, and passes its error on', async () => {
    const { slots, run, settle, started } = setUp({ cores: 1 })
    await expect(slots.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
    await expect(
      slots.run(() => {
        throw new Error('at once')
      }),
    ).rejects.toThrow('at once')
    void run()
    await settle()
    expect(started()).toBe(1)
  })

  it('serves the queue in the order of arrival, and lets no newcomer past it', async () => {
    const { slots, settle } = setUp({ cores: 1 })
    const order: string[] = []
    const ends: (() => void)[] = []
    const enter = (name: string) =>
      void slots.run(() => {
        order.push(name)
        return new Promise<void>((done) => ends.push(done))
      })
    for (const name of ['a', 'b', 'c']) enter(name)
    await settle()
    ends[0]?.()
    enter('d')
    await settle()
    for (const count of [1, 2, 3]) {
      ends[count]?.()
      await settle()
    }
    expect(order).toEqual(['a', 'b', 'c', 'd'])
  })

  it('says how many work, sleep and wait', async () => {
    const { slots, run, running, settle } = setUp({ cores: 1, maximumChildren: 2 })
    for (let count = 0; count < 3; count += 1) void run()
    await settle()
    expect(slots.figures()).toEqual({ working: 1, children: 1, waiting: 2 })
    await vi.advanceTimersByTimeAsync(1_500)
    expect(slots.figures()).toEqual({ working: 1, children: 2, waiting: 1 })
    while (running.length > 0) {
      running.shift()?.()
      await settle()
    }
    expect(slots.figures()).toEqual({ working: 0, children: 0, waiting: 0 })
  })

  it('counts right after a mix of short and sleeping children', async () => {
    const { run, running, started, settle } = setUp({ cores: 1, maximumChildren: 3, queueLength: 100 })
    for (let count = 0; count < 10; count += 1) void run()
    for (let round = 0; round < 20; round += 1) {
      await vi.advanceTimersByTimeAsync(round % 2 === 0 ? 1_500 : 100)
      running.shift()?.()
      await settle()
    }
    expect(started()).toBe(10)
    // All have ended: exactly one core is free again.
    for (let count = 0; count < 2; count += 1) void run()
    await settle()
    expect(started()).toBe(11)
  })
})
