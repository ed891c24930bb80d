import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createBatch } from '../../../src/audit/request-audit.ts'
import type { Pending } from '../../../src/audit/trail.ts'
import { createTestTrail, entry, type TestTrail } from '../../support/test-trail.ts'

const pending = (uid: string, isIntent = false): Pending => ({ entry: entry(`record ${uid}`), uid, isIntent })
const forgotten = (uid: string): Pending => ({ entry: undefined, uid, isIntent: true })

describe('records of one turn of the event loop', () => {
  let rig: TestTrail
  beforeEach(() => {
    rig = createTestTrail()
  })
  afterEach(() => rig.database.close())

  /** A batch that records what it writes in one commit. */
  function open() {
    const { trail, store, verify } = rig.open()
    const commits: string[][] = []
    const batch = createBatch({
      writeAll(all) {
        commits.push(all.map(({ uid }) => uid))
        trail.writeAll(all)
      },
    })
    return { trail, store, verify, batch, commits, uids: () => store.slice(1, 100).map(({ uid }) => uid) }
  }

  it('records of one turn of the event loop are one commit, those of the next turn another', async () => {
    const { batch, commits, uids, verify } = open()
    const first = Promise.all([batch.add(pending('a')), batch.add(pending('b'))])
    expect(uids()).toEqual([])
    await first
    expect(uids()).toEqual(['a', 'b'])
    await batch.add(pending('c'))
    expect(commits).toEqual([['a', 'b'], ['c']])
    expect(await verify()).toMatchObject({ isIntact: true })
  })

  it('a stop writes waiting records at once, and not again', async () => {
    const { batch, commits, uids } = open()
    const added = batch.add(pending('a'))
    batch.flush()
    expect(uids()).toEqual(['a'])
    await added
    await setImmediate()
    batch.flush()
    expect(commits).toEqual([['a']])
  })

  it('a commit removes the intents of its requests, with a record or without one', async () => {
    const { trail, store, batch, commits, uids } = open()
    const [recorded, counted] = [trail.begin(entry('begun'))!, trail.begin(entry('begun'))!]
    await Promise.all([batch.add(pending(recorded, true)), batch.add(forgotten(counted))])
    expect(store.intents()).toEqual([])
    expect([commits, uids()]).toEqual([[[recorded, counted]], [recorded]])
    expect(rig.open().store.slice(1, 10)).toHaveLength(1)
  })

  it('records of a turn are all missed if nothing can be written, and their intents are finished later', async () => {
    const { trail, store, batch } = open()
    const [begun, counted] = [trail.begin(entry('begun'))!, trail.begin(entry('begun'))!]
    rig.full()
    const all = [pending('a'), pending(begun, true), forgotten(counted), pending('b')]
    await Promise.all(all.map(batch.add))
    expect(trail.unwritten()).toBe(2)
    expect(rig.auditLines().map(({ msg }) => msg)).toEqual(['record a', `record ${begun}`, 'record b'])
    rig.freed()
    await batch.add(pending('c'))
    expect(store.slice(1, 100).map(({ message }) => message)).toEqual([
      expect.stringContaining('2'),
      `record ${begun}`,
      'record c',
    ])
    expect(store.intents()).toEqual([])
  })

  it('one record that fails does not make the others of its turn fail', async () => {
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
