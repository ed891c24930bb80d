import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createBatch } from '../../src/audit/batch.ts'
import type { Pending } from '../../src/audit/trail.ts'
import { createTestTrail, entry, type TestTrail } from '../support/test-trail.ts'

const pending = (uid: string, isIntent = false): Pending => ({ entry: entry(`record ${uid}`), uid, isIntent })

describe('records of one turn of the event loop', () => {
  let rig: TestTrail
  beforeEach(() => {
    rig = createTestTrail()
  })
  afterEach(() => rig.database.close())

  /** A batch that notes what it writes together. */
  function open() {
    const { trail, store, verify } = rig.open()
    const commits: string[][] = []
    const batch = createBatch({
      writeAll(all) {
        commits.push(all.map(({ uid }) => uid))
        trail.writeAll(all)
      },
      forget: trail.forget,
      settle: trail.settle,
    })
    return { trail, store, verify, batch, commits, uids: () => store.slice(1, 100).map(({ uid }) => uid) }
  }

  it('are one commit, those of the next turn another', async () => {
    const { batch, commits, uids, verify } = open()
    const first = Promise.all([batch.add(pending('a')), batch.add(pending('b'))])
    expect(uids()).toEqual([])
    await first
    expect(uids()).toEqual(['a', 'b'])
    await batch.add(pending('c'))
    expect(commits).toEqual([['a', 'b'], ['c']])
    expect(await verify()).toMatchObject({ isIntact: true })
  })

  it('are written at once by a stop, and not again', async () => {
    const { batch, commits, uids } = open()
    const added = batch.add(pending('a'))
    batch.flush()
    expect(uids()).toEqual(['a'])
    await added
    await setImmediate()
    batch.flush()
    expect(commits).toEqual([['a']])
  })

  it('settle what was begun in the turn after', async () => {
    const { trail, store, batch } = open()
    await batch.add(pending(trail.begin(entry('begun')), true))
    expect(store.intents()).toHaveLength(1)
    await setImmediate()
    expect(store.intents()).toEqual([])
  })

  it('take away what was begun and has no record, soon', async () => {
    const { trail, store, batch, commits } = open()
    batch.forget(trail.begin(entry('begun')))
    expect(store.intents()).toHaveLength(1)
    await setImmediate()
    expect(store.intents()).toEqual([])
    expect(commits).toEqual([])
    expect(rig.open().store.slice(1, 10)).toEqual([])
  })

  describe('settle', () => {
    let settled = 0
    let isFull = false
    const settle = () => {
      settled += 1
      return !isFull
    }
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      settled = 0
      isFull = false
    })
    afterEach(() => vi.useRealTimers())

    it('at once at a stop, and then no more', async () => {
      const batch = createBatch({ writeAll: () => undefined, forget: () => undefined, settle })
      await batch.add(pending('a'))
      batch.flush()
      expect(settled).toBe(1)
      await setImmediate()
      expect(settled).toBe(1)
    })

    it('again each second while they cannot, until a stop', async () => {
      const batch = createBatch({ writeAll: () => undefined, forget: () => undefined, settle })
      isFull = true
      await batch.add(pending('a'))
      await setImmediate()
      vi.advanceTimersByTime(2_500)
      expect(settled).toBe(3)
      isFull = false
      vi.advanceTimersByTime(5_000)
      expect(settled).toBe(4)
      isFull = true
      await batch.add(pending('b'))
      await setImmediate()
      batch.flush()
      vi.advanceTimersByTime(5_000)
      expect(settled).toBe(6)
    })
  })

  it('are each missed where nothing can be written, and what was begun is written later', async () => {
    const { trail, store, batch } = open()
    const begun = trail.begin(entry('begun'))
    rig.full()
    await Promise.all([batch.add(pending('a')), batch.add(pending(begun, true)), batch.add(pending('b'))])
    expect(trail.unwritten()).toBe(2)
    expect(rig.auditLines().map(({ msg }) => msg)).toEqual(['record a', `record ${begun}`, 'record b'])
    rig.freed()
    await batch.add(pending('c'))
    expect(store.slice(1, 100).map(({ message }) => message)).toEqual([
      expect.stringContaining('2'),
      `record ${begun}`,
      'record c',
    ])
  })

  it('do not fail with one of them', async () => {
    const { trail, uids, verify } = open()
    const batch = createBatch(trail)
    const bad = { ...pending('bad'), entry: { ...entry('bad'), address: undefined as unknown as string } }
    const settled = await Promise.allSettled([pending('a'), bad, pending('b')].map(batch.add))
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(uids()).toEqual(['a', 'b'])
    await batch.add(pending('c'))
    expect(await verify()).toMatchObject({ isIntact: true })
  })
})
