import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createPamSlots, type LoginOrigin, type PamSlotsOptions } from '../../../src/auth/pam-slots.ts'
import type { Client } from '../../../src/base/client.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const client = (name: string, network?: string): Client => ({ name, network })
const stranger: LoginOrigin = { client: client('192.0.2.1'), knownUser: undefined }

function setUp(options: Partial<PamSlotsOptions> = {}) {
  const asleep = new Map<number, () => void>()
  const onSleep = (pid: number, told: () => void) => {
    asleep.set(pid, told)
    return () => asleep.delete(pid)
  }
  const slots = createPamSlots({ cores: 2, maximumChildren: 5, queueLength: 3, onSleep, ...options })
  const running: (() => void)[] = []
  let started = 0
  const run = (origin = stranger) =>
    slots.run(origin, (tell) => {
      started += 1
      tell(started)
      return new Promise<void>((done) => running.push(done))
    })
  const settle = () => vi.advanceTimersByTimeAsync(0)
  return { slots, run, running, settle, started: () => started, asleep }
}

const full = { code: 'TooManyLogins', retryAfterSec: 2 }

describe('createPamSlots', () => {
  it('as many logins run at once as there are cores; the next one starts when one has ended', async () => {
    const { run, running, settle, started } = setUp()
    for (let count = 0; count < 3; count += 1) void run()
    await settle()
    expect(started()).toBe(2)
    running[0]?.()
    await settle()
    expect(started()).toBe(3)
  })

  it('a child that is older than 1 s no longer counts, whatever it does', async () => {
    const { run, started } = setUp()
    for (let count = 0; count < 4; count += 1) void run()
    await vi.advanceTimersByTimeAsync(999)
    expect(started()).toBe(2)
    await vi.advanceTimersByTimeAsync(1)
    expect(started()).toBe(4)
  })

  it('no child is started beyond the maximum, sleeping ones included', async () => {
    const { run, running, settle, started } = setUp({ queueLength: 10 })
    for (let count = 0; count < 8; count += 1) void run()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(started()).toBe(5)
    running[0]?.()
    await settle()
    expect(started()).toBe(6)
  })

  it('a login is refused at once when the queue is full', async () => {
    const { run } = setUp()
    for (let count = 0; count < 5; count += 1) void run()
    await expect(run()).rejects.toMatchObject(full)
  })

  it('a login without a free slot is refused when the queue is 0 long', async () => {
    const { run, settle } = setUp({ queueLength: 0 })
    void run()
    void run()
    await settle()
    await expect(run()).rejects.toMatchObject(full)
  })

  it('the slot of work that fails is freed, and its error is passed on', async () => {
    const { slots, run, settle, started } = setUp({ cores: 1 })
    await expect(slots.run(stranger, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    await expect(
      slots.run(stranger, () => {
        throw new Error('at once')
      }),
    ).rejects.toThrow('at once')
    void run()
    await settle()
    expect(started()).toBe(1)
  })

  it('the queue is served in the order of arrival, and a new login does not pass it', async () => {
    const { slots, settle } = setUp({ cores: 1 })
    const order: string[] = []
    const ends: (() => void)[] = []
    const enter = (name: string) =>
      void slots.run(stranger, () => {
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

  it('the numbers of working, sleeping and waiting logins are reported', async () => {
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

  it('the numbers are right after a mix of short and sleeping children', async () => {
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

  it('the slot of a child is freed once, when it begins to sleep', async () => {
    const { slots, run, asleep, settle, started } = setUp({ cores: 1 })
    for (let count = 0; count < 3; count += 1) void run()
    await settle()
    asleep.get(1)?.()
    asleep.get(1)?.()
    await settle()
    expect(started()).toBe(2)
    expect(slots.figures()).toEqual({ working: 1, children: 2, waiting: 1 })
    await vi.advanceTimersByTimeAsync(1_000)
    expect(started()).toBe(3)
  })

  it('a child that has ended is no longer observed', async () => {
    const { run, running, asleep, settle } = setUp()
    void run()
    await settle()
    expect([...asleep.keys()]).toEqual([1])
    running[0]?.()
    await settle()
    expect(asleep.size).toBe(0)
  })
})

describe('unknown pairs that wait', () => {
  /** One core, which is busy; each login that starts notes its name and ends at once. */
  async function setUpQueue(queueLength: number) {
    const { slots, run, running, settle } = setUp({ cores: 1, queueLength })
    void run()
    await settle()
    const served: string[] = []
    const refused: string[] = []
    const enter = (name: string, network?: string) =>
      slots
        .run({ client: client(name.replace(/-.*/, ''), network), knownUser: undefined }, async () => {
          served.push(name)
        })
        .catch((error: unknown) => {
          expect(error).toMatchObject(full)
          refused.push(name)
        })
    const serveAll = async () => {
      await settle()
      running[0]?.()
      await settle()
      return served
    }
    return { enter, serveAll, refused }
  }

  it('unknown pairs take turns by client, each in the order of its logins', async () => {
    const { enter, serveAll } = await setUpQueue(10)
    for (const name of ['a-1', 'a-2', 'a-3', 'b-1', 'b-2', 'c-1']) void enter(name)
    expect(await serveAll()).toEqual(['a-1', 'b-1', 'c-1', 'a-2', 'b-2', 'a-3'])
  })

  it('unknown pairs take turns by network, and within it by client', async () => {
    const { enter, serveAll } = await setUpQueue(10)
    for (const name of ['a-1', 'a-2', 'b-1', 'c-1']) void enter(name, 'network')
    void enter('d-1')
    expect(await serveAll()).toEqual(['a-1', 'd-1', 'b-1', 'c-1', 'a-2'])
  })

  it('a new login takes the place of the last one of the client that has most', async () => {
    const { enter, serveAll, refused } = await setUpQueue(4)
    for (const name of ['a-1', 'b-1', 'a-2', 'a-3', 'lone']) void enter(name)
    expect(await serveAll()).toEqual(['a-1', 'b-1', 'lone', 'a-2'])
    expect(refused).toEqual(['a-3'])
  })

  it('a new login takes the place of one of the network that has most, of its client that has most', async () => {
    const { enter, serveAll, refused } = await setUpQueue(4)
    for (const name of ['a-1', 'b-1', 'b-2', 'c-1']) void enter(name, 'network')
    void enter('lone')
    void enter('alone')
    expect(await serveAll()).toEqual(['a-1', 'lone', 'alone', 'b-1'])
    expect(refused).toEqual(['b-2', 'c-1'])
  })

  it('a new login is refused where all clients have as many waiting', async () => {
    const { enter, serveAll, refused } = await setUpQueue(3)
    for (const name of ['a-1', 'b-1', 'c-1', 'd-1', 'a-2']) void enter(name)
    expect(await serveAll()).toEqual(['a-1', 'b-1', 'c-1'])
    expect(refused).toEqual(['d-1', 'a-2'])
  })
})

describe('a pair that has logged in', () => {
  const pair = (knownUser: string, name: string): LoginOrigin => ({ client: client(name), knownUser })

  it('a pair that has logged in is served at once where unknown pairs have all slots and fill the queue', async () => {
    const { slots, run, settle, started } = setUp()
    for (let count = 0; count < 5; count += 1) void run()
    void run(pair('bob', '192.0.2.9'))
    await settle()
    expect(started()).toBe(3)
    expect(slots.figures()).toEqual({ working: 3, children: 3, waiting: 3 })
  })

  it('a pair that has logged in has one place; its second login waits with the unknown pairs', async () => {
    const { run, running, settle, started } = setUp()
    for (let count = 0; count < 2; count += 1) void run()
    void run(pair('bob', '192.0.2.9'))
    void run(pair('bob', '192.0.2.9'))
    await settle()
    expect(started()).toBe(3)
    running[2]?.()
    await settle()
    expect(started()).toBe(3)
    void run(pair('bob', '192.0.2.9'))
    await settle()
    expect(started(), 'the place is free again').toBe(4)
  })

  it('pairs that have logged in run at most as many as there are cores, so that memory stays bounded', async () => {
    const { slots, run, settle } = setUp({ queueLength: 100, maximumChildren: 100 })
    for (let count = 0; count < 20; count += 1) void run()
    for (let count = 0; count < 20; count += 1) void run(pair(`user ${count}`, '192.0.2.9'))
    await settle()
    expect(slots.figures()).toEqual({ working: 4, children: 4, waiting: 36 })
  })
})
