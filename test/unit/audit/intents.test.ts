import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTrail } from '../../../src/audit/trail.ts'
import { createTestTrail, entry, type TestTrail } from '../../support/test-trail.ts'

let rig: TestTrail
beforeEach(() => {
  rig = createTestTrail()
})
afterEach(() => rig.database.close())

it('an intent that an earlier release wrote, without uids, becomes a record', async () => {
  const { store } = rig.open()
  const { actorUid, projectUid, ...old } = { actorUid: '', projectUid: '', ...entry('change') }
  expect([actorUid, projectUid]).toEqual(['', ''])
  store.putIntent({ uid: 'u', entry: old })
  const { store: next, verify } = rig.open()
  expect(next.read(1)).toMatchObject({ uid: 'u', actorUid: '', projectUid: '', outcome: 'unknown' })
  expect(await verify()).toMatchObject({ isIntact: true, count: 1 })
})

describe('a change that was begun', () => {
  it('an intent becomes one record, with the uid that was returned before', () => {
    const { trail, store } = rig.open()
    const uid = trail.begin(entry('change'))!
    expect(trail.head().seq).toBe(0)
    trail.finish(uid, entry('changed'))
    expect(store.read(1)).toMatchObject({ uid, message: 'changed' })
    expect(store.intents()).toEqual([])
  })

  it('an intent without an end becomes a record with an unknown outcome at the next start', () => {
    const uid = rig.open().trail.begin(entry('change'))
    const { store } = rig.open()
    expect(store.read(1)).toMatchObject({ uid, message: 'change', outcome: 'unknown' })
    expect(store.intents()).toEqual([])
  })

  it('an intent is on the disk, and a line of the journal, when the call returns', () => {
    const { store, trail: opened } = rig.open()
    const uid = opened.begin(entry('change'))!
    const synchronous: unknown[] = []
    const put: typeof store.put = (record) => {
      synchronous.push(rig.database.sql.prepare('PRAGMA synchronous').get()?.synchronous)
      store.put(record)
    }
    const { database, clock, captured } = rig
    const trail = createTrail({ store: { ...store, put }, database, clock, log: captured.log })
    expect(synchronous).toEqual([full])
    expect(store.intents()).toEqual([])
    expect(rig.auditLines()).toMatchObject([{ uid, msg: 'change', outcome: 'unknown' }])
    trail.finish(trail.begin(entry('change'))!, entry('changed'))
    expect(synchronous).toEqual([full, full])
    expect(rig.auditLines().at(-1)).toMatchObject({ msg: 'changed', seq: 2 })
  })

  it('no intent is left behind when many could not be recorded', () => {
    const { trail, store } = rig.open()
    const [one, another, ...many] = Array.from({ length: 27 }, () => trail.begin(entry('change'))!)
    const finish = (uid: string) => trail.finish(uid, entry('changed'))
    rig.full()
    many.forEach(finish)
    rig.freed()
    finish(one!)
    finish(another!)
    expect(store.intents()).toEqual([])
    expect(store.slice(1, 99)).toHaveLength(27)
  })
})

// Of `PRAGMA synchronous`: a commit waits for the disk.
const full = 2
