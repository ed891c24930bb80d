import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTrail } from '../../src/audit/trail.ts'
import { createTestTrail, entry, type TestTrail } from '../support/test-trail.ts'

let rig: TestTrail
beforeEach(() => {
  rig = createTestTrail()
})
afterEach(() => rig.database.close())

describe('a change that was begun', () => {
  it('becomes one record, with the uid that was given out', () => {
    const { trail, store } = rig.open()
    const uid = trail.begin(entry('change'))
    expect(trail.head().seq).toBe(0)
    trail.finish(uid, entry('changed'))
    expect(store.read(1)).toMatchObject({ uid, message: 'changed' })
    expect(store.intents()).toEqual([])
  })

  it('and never ended becomes a record with an unknown outcome at the next start', () => {
    const uid = rig.open().trail.begin(entry('change'))
    const { store } = rig.open()
    expect(store.read(1)).toMatchObject({ uid, message: 'change', outcome: 'unknown' })
    expect(store.intents()).toEqual([])
  })

  describe('and is recorded with others that were', () => {
    const synchronous = () => rig.database.sql.prepare('PRAGMA synchronous').get()?.synchronous
    const [normal, full] = [1, 2]

    /** A trail that notes whether each record waits for the disk. */
    function openWatched() {
      const opened = rig.open()
      const store = { ...opened.store }
      const waits: unknown[] = []
      store.insert = (record) => {
        waits.push(synchronous())
        opened.store.insert(record)
      }
      const { database, clock, captured } = rig
      const trail = createTrail({ store, database, clock, log: captured.log })
      const finish = (uid: string) => trail.writeAll([{ uid, entry: entry('changed'), isIntent: true }])
      return { trail, store, waits, finish, intents: () => store.intents().map(({ uid }) => uid) }
    }

    it('waits for no disk; its intent goes, and the journal is told, after the wait that follows', () => {
      const { trail, store, waits, finish, intents } = openWatched()
      const uid = trail.begin(entry('change'))
      finish(uid)
      expect([waits, intents()]).toEqual([[normal], [uid]])
      expect(store.read(1)).toMatchObject({ uid, message: 'changed' })
      expect(rig.auditLines()).toEqual([])
      trail.settle()
      expect(intents()).toEqual([])
      expect(rig.auditLines()).toMatchObject([{ uid, msg: 'changed' }])
      expect(synchronous()).toBe(full)
    })

    it('waits where one of them was not begun, and takes along those before', () => {
      const { trail, waits, finish, intents } = openWatched()
      finish(trail.begin(entry('change')))
      const uid = trail.begin(entry('change'))
      trail.writeAll([
        { uid, entry: entry('changed'), isIntent: true },
        { uid: trail.newUid(), entry: entry('other'), isIntent: false },
      ])
      expect([waits, intents()]).toEqual([[normal, full, full], []])
      expect(rig.auditLines().map(({ msg }) => msg)).toEqual(['changed', 'changed', 'other'])
    })

    it('waits where records are missing', () => {
      const { trail, waits, finish, intents } = openWatched()
      const uid = trail.begin(entry('change'))
      rig.full()
      trail.append(entry('missed'))
      rig.freed()
      finish(uid)
      expect([waits, intents()]).toEqual([[full, full], []])
    })

    it('is recorded once, also where the daemon is killed before its intent goes', async () => {
      const { trail, finish } = openWatched()
      finish(trail.begin(entry('change')))
      const { store, verify } = rig.open()
      expect(store.intents()).toEqual([])
      expect(store.slice(1, 9).map(({ outcome }) => outcome)).toEqual(['success'])
      expect(rig.auditLines()).toMatchObject([{ msg: 'changed', seq: 1 }])
      expect(await verify()).toMatchObject({ isIntact: true, count: 1 })
    })

    it('keeps its intent while the disk is full, says so once, and waits from then on', () => {
      const { trail, waits, finish, intents } = openWatched()
      const [first, second] = [trail.begin(entry('change')), trail.begin(entry('change'))]
      finish(first)
      rig.full()
      expect([trail.settle(), trail.settle()]).toEqual([false, false])
      expect(intents()).toEqual([first, second])
      const words = () => rig.captured.texts().filter((text) => text.includes('newest records'))
      expect(words()).toEqual([expect.stringMatching(/^a power cut would take .*; see /)])
      expect(rig.auditLines()).toMatchObject([{ uid: first, msg: 'changed' }])
      rig.freed()
      finish(second)
      expect([waits, intents()]).toEqual([[normal, full], []])
      expect(trail.settle()).toBe(true)
      expect(words().at(-1)).toMatch(/are on the disk now$/)
    })

    it('leaves no intent behind where many could not be recorded', () => {
      const { trail, store, finish, intents } = openWatched()
      const [one, another, ...many] = Array.from({ length: 27 }, () => trail.begin(entry('change')))
      rig.full()
      many.forEach(finish)
      rig.freed()
      finish(one!)
      finish(another!)
      expect(intents()).toEqual([])
      expect(store.slice(1, 99)).toHaveLength(27)
    })

    it('is told to the journal before what only that has, and before a head', () => {
      const { trail, finish } = openWatched()
      finish(trail.begin(entry('change')))
      rig.full()
      trail.append(entry('missed'))
      rig.freed()
      trail.append(entry('next'))
      finish(trail.begin(entry('change')))
      trail.announceHead()
      const lines = rig.captured.lines.filter(({ kind }) => String(kind).startsWith('audit'))
      expect(lines.map(({ msg, seq }) => [msg, seq])).toEqual([
        ['changed', 1],
        ['missed', null],
        [expect.stringContaining('1 records'), 2],
        ['next', 3],
        ['changed', 4],
        ['audit head', 4],
      ])
    })
  })
})
