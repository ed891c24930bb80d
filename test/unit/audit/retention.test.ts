import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { hex } from '../../../src/audit/record.ts'
import { createAgeClock, retain } from '../../../src/audit/retention.ts'
import { createTestTrail, entry, type TestTrail } from '../../support/test-trail.ts'
import { dayMs, hourMs } from '../../support/turning-clock.ts'

let rig: TestTrail
beforeEach(() => {
  rig = createTestTrail()
})
afterEach(() => rig.database.close())

describe('retention', () => {
  const limits = { retentionDays: 10, limitBytes: 1e9 }

  it('retention removes old records, and leaves a checkpoint that verification accepts', async () => {
    const { store, trail, verify } = rig.fill(250)
    const last = store.read(250)!
    rig.clock.turn(20 * dayMs)
    trail.append(entry('young'))
    expect(await retain({ store, trail, clock: rig.clock, ...limits })).toBe(250)
    expect(await verify()).toMatchObject({ isIntact: true, first: 251, count: 2 })
    expect(store.read(252)).toMatchObject({
      kind: 'checkpoint',
      resourceName: '250',
      resourceUid: hex(last.hash),
    })
  })

  it('retention removes the oldest records beyond the size', async () => {
    const { store, trail, verify } = rig.fill(1_000)
    const limitBytes = store.usedBytes() / 2
    const removed = await retain({ store, trail, clock: rig.clock, ...limits, limitBytes })
    expect(removed).toBeGreaterThan(400)
    expect(removed).toBeLessThan(900)
    // A hundred records of the average size may stay until there are more to remove.
    const average = store.usedBytes() / (trail.head().seq - store.first() + 1)
    expect(store.usedBytes()).toBeLessThan(limitBytes + 100 * average)
    expect(await verify()).toMatchObject({ isIntact: true, first: removed + 1 })
  })

  it('retention removes records beyond the size at once, and old ones at 20,000 an hour', async () => {
    const { store, trail, verify } = rig.bulk(45_000)
    rig.clock.turn(20 * dayMs)
    expect(await retain({ store, trail, clock: rig.clock, ...limits })).toBe(20_000)
    const limitBytes = store.usedBytes() / 20
    expect(await retain({ store, trail, clock: rig.clock, retentionDays: 100, limitBytes })).toBeGreaterThan(
      23_000,
    )
    expect(store.usedBytes()).toBeLessThan(limitBytes + 60_000)
    expect(await verify()).toMatchObject({ isIntact: true })
  })

  it('retention removes no records because other data enlarges the database', async () => {
    const { store, trail } = rig.fill(1_000)
    rig.database.sql.exec('CREATE TABLE ballast AS SELECT zeroblob(50000000)')
    expect(await retain({ store, trail, clock: rig.clock, ...limits, limitBytes: 3_000_000 })).toBe(0)
  })

  it('retention removes nothing from a trail that was tampered with, and records that once', async () => {
    const { store, trail } = rig.fill(250)
    rig.tamper('UPDATE audit SET at = 0 WHERE seq = 120')
    rig.clock.turn(20 * dayMs)
    trail.append(entry('young'))
    for (let hour = 0; hour < 3; hour += 1)
      await expect(retain({ store, trail, clock: rig.clock, ...limits })).rejects.toThrow('record 120')
    expect(store.first()).toBe(1)
    expect(store.slice(251, 9).map(({ message }) => message)).toEqual([
      'young',
      'retention removes nothing, the trail is damaged: record 120, the record was altered',
    ])
  })

  it('retention removes nothing from a young and small trail', async () => {
    const { store, trail } = rig.fill(10)
    expect(await retain({ store, trail, clock: rig.clock, ...limits })).toBe(0)
    expect(trail.head().seq).toBe(10)
  })

  it('retention can run many times', async () => {
    const { store, trail, verify } = rig.fill(10)
    for (let round = 0; round < 5; round += 1) {
      rig.clock.turn(20 * dayMs)
      trail.append(entry('young'))
      await retain({ store, trail, clock: rig.clock, ...limits })
    }
    expect(await verify()).toMatchObject({ isIntact: true, count: 2, first: 19 })
  })

  it('a trail with an interrupted retention is intact, and the next retention finishes it', async () => {
    const { store, trail, verify } = rig.fill(10)
    rig.clock.turn(20 * dayMs)
    // The state between the checkpoint and the end of the removal.
    await retain({ store: { ...store, remove: () => 0 }, trail, clock: rig.clock, ...limits })
    store.remove(3)
    expect(await verify()).toMatchObject({ isIntact: true, first: 4 })
    expect(await retain({ store, trail, clock: rig.clock, ...limits })).toBe(7)
    expect(await verify()).toMatchObject({ isIntact: true, first: 11 })
  })

  it('verification finds a retention that removed more than its checkpoint says', async () => {
    const { store, trail, verify } = rig.fill(10)
    rig.clock.turn(20 * dayMs)
    trail.append(entry('young'))
    await retain({ store, trail, clock: rig.clock, ...limits })
    rig.tamper('DELETE FROM audit WHERE seq = 11')
    expect(await verify()).toMatchObject({ isIntact: false })
    rig.database.sql.exec('UPDATE audit_checkpoint SET removed_to = 11')
    expect(await verify()).toMatchObject({ isIntact: false })
  })

  it.each([
    ['jumps ahead while the program runs', 0],
    ['is ahead at its start', 4_000 * dayMs],
  ])('a clock that %s costs nothing until it went on for a day', async (_what, aheadAtStart) => {
    const { store, trail } = rig.fill(200)
    let [ahead, passed] = [aheadAtStart, 0]
    const clock = { now: () => rig.clock.now() + passed + ahead, monotonic: () => passed }
    const ages = createAgeClock({ store, trail }, clock)
    const run = () => retain({ store, trail, clock: ages, ...limits })
    expect(await run()).toBe(0)
    ahead = 4_000 * dayMs
    for (passed = hourMs; passed < dayMs; passed += hourMs) expect(await run(), String(passed)).toBe(0)
    passed += 2 * hourMs
    expect(await run()).toBeGreaterThanOrEqual(200)
  })

  it('retention removes nothing if the checkpoint cannot be written', async () => {
    const { store, trail, verify } = rig.fill(10)
    rig.clock.turn(20 * dayMs)
    rig.full()
    await expect(retain({ store, trail, clock: rig.clock, ...limits })).rejects.toThrow('readonly')
    rig.freed()
    expect(await verify()).toMatchObject({ isIntact: true, first: 1 })
  })
})
