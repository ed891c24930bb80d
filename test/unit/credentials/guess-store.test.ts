import { describe, expect, it } from 'vitest'
import { createGuessStore } from '../../../src/credentials/guess-store.ts'
import { openDatabase } from '../../support/open-database.ts'
import { setUpGuard, type GuardSetUp } from '../../support/guess-guard.ts'
import { captureLog } from '../../support/https-server.ts'
import { createTurningClock, dayMs, hourMs, minuteMs } from '../../support/turning-clock.ts'

/** The guard after a restart, with the state that the one before left on the disk. */
const restart = ({ database }: ReturnType<typeof setUpGuard>, options: GuardSetUp = {}) =>
  setUpGuard({ ...options, database })

/** A clock of a host with another time after each start. */
const clockAt = (now: number) => createTurningClock(now)

describe('after a restart', () => {
  it('after a restart a pair is locked for the time that was left', () => {
    const first = setUpGuard()
    first.lock('bob', '192.0.2.1')
    first.clock.turn(5 * minuteMs)
    first.keep()
    const second = restart(first)
    expect(second.begin('bob', '192.0.2.1')).toBe(600)
    expect(second.begin('BOB', '192.0.2.1')).toBe(600)
    second.allowed('bob', '192.0.2.2').cancel()
    second.clock.turn(10 * minuteMs)
    second.allowed('bob', '192.0.2.1').cancel()
  })

  it('after a restart there is a lock of which only the failure was written', () => {
    const first = setUpGuard()
    first.lock('bob', '192.0.2.1')
    expect(restart(first).begin('bob', '192.0.2.1')).toBe(900)
  })

  it('after a restart failures below the lock still count, delays included', () => {
    const first = setUpGuard()
    for (let count = 0; count < 3; count += 1) first.fail('bob', '192.0.2.1')
    const second = restart(first)
    expect(second.begin('bob', '192.0.2.1')).toBe(1)
    second.clock.turn(1_000)
    second.fail('bob', '192.0.2.1')
    const third = restart(second)
    third.clock.turn(2_000)
    third.fail('bob', '192.0.2.1')
    expect(third.begin('bob', '192.0.2.1')).toBe(900)
  })

  it('after a restart an address, a network and a user keep their counts', () => {
    let guard = setUpGuard({ userFailuresPerHour: 30 })
    const next = () => (guard = restart(guard, { userFailuresPerHour: 30 }))
    for (let count = 0; count < 20; count += 1) next().fail(`user ${count}`, '192.0.2.1')
    expect(next().begin('another', '192.0.2.1')).toBe(900)
    for (let count = 0; count < 30; count += 1) next().fail('carol', `198.51.100.${count}`)
    expect(next().begin('carol', '203.0.113.1')).toBe(3_600)
    for (let count = 0; count < 160; count += 1)
      next().fail(`user ${count}`, `2001:db8:cafe:1::${count.toString(16)}`)
    expect(next().begin('another', '2001:db8:cafe:1:ffff::1')).toBe(900)
  })

  it('after a restart the counts of a pair that succeeded are gone', () => {
    const first = setUpGuard()
    for (let count = 0; count < 3; count += 1) first.fail('bob', '192.0.2.1')
    first.clock.turn(1_000)
    first.allowed('bob', '192.0.2.1').succeed()
    const second = restart(first)
    for (let count = 0; count < 2; count += 1) second.fail('bob', '192.0.2.1')
    expect(second.begin('bob', '192.0.2.1')).not.toBeTypeOf('number')
  })

  it.each([
    ['backwards by years', 0],
    ['forwards by years', Date.UTC(2099, 0)],
  ])('after a restart a clock that was set %s neither ends a lock nor makes it longer', (_what, now) => {
    const first = setUpGuard()
    first.lock('bob', '192.0.2.1')
    first.clock.turn(4 * minuteMs)
    first.keep()
    const second = restart(first, { clock: clockAt(now) })
    expect(second.begin('bob', '192.0.2.1')).toBe(660)
    second.clock.turn(11 * minuteMs)
    expect(second.begin('bob', '192.0.2.1')).not.toBeTypeOf('number')
  })

  it('after a restart no lock is longer than configured now, whatever is in the file', () => {
    const first = setUpGuard()
    first.lock('bob', '192.0.2.1')
    expect(restart(first, { lockMinutes: 2 }).begin('bob', '192.0.2.1')).toBe(120)
    first.database.sql.exec('UPDATE guess SET blocked_until = 1000000000000000, forget_at = 1000000000000000')
    expect(restart(first).begin('bob', '192.0.2.1')).toBe(900)
  })

  it('failures that have expired are removed, and nothing more is written', () => {
    const first = setUpGuard()
    first.lock('bob', '192.0.2.1')
    first.clock.turn(hourMs + minuteMs)
    first.keep()
    const rows = () => first.database.sql.prepare('SELECT count(*) AS rows FROM guess').get()
    expect(rows()).toEqual({ rows: 0 })
    const changes = () => first.database.sql.prepare('SELECT total_changes() AS made').get()
    const before = changes()
    first.clock.turn(dayMs)
    first.keep()
    expect(changes()).toEqual(before)
  })
})

describe('on the disk', () => {
  it('no name is stored as it was typed', () => {
    const { database, fail } = setUpGuard()
    fail('my secret password', '192.0.2.1')
    const text = JSON.stringify(database.sql.prepare('SELECT * FROM guess').all())
    expect(text).toContain('192.0.2.1')
    expect(text).not.toContain('secret')
  })

  it('there are never more rows than counters, and locked ones are removed last', () => {
    const first = setUpGuard({ trackedKeys: 60 })
    first.lock('bob', '192.0.2.1')
    for (let count = 0; count < 500; count += 1) {
      first.fail(`user ${count}`, `198.51.${count >> 8}.${count & 255}`)
      const { rows } = first.database.sql.prepare('SELECT count(*) AS rows FROM guess').get() as {
        rows: number
      }
      expect(rows).toBeLessThanOrEqual(60)
    }
    expect(restart(first, { trackedKeys: 60 }).begin('bob', '192.0.2.1')).toBe(900)
  })

  it('a user who is closed to unknown addresses stays so, whatever other names are typed since', () => {
    const limits = { trackedKeys: 200, userFailuresPerHour: 30 }
    const first = setUpGuard(limits)
    for (let count = 0; count < 30; count += 1) first.fail('carol', `203.0.113.${count}`)
    first.clock.turn(minuteMs)
    for (let count = 0; count < 500; count += 1)
      first.fail(`user ${count}`, `198.51.${count >> 8}.${count & 255}`)
    expect(first.begin('carol', '192.0.2.1')).toBe(3_540)
    expect(restart(first, limits).begin('carol', '192.0.2.1')).toBe(3_540)
  })

  it('a key with many failures is removed after one with a single failure', () => {
    const limits = { trackedKeys: 200, userFailuresPerHour: 30 }
    const first = setUpGuard(limits)
    for (let count = 0; count < 29; count += 1) first.fail('carol', `203.0.113.${count}`)
    first.clock.turn(minuteMs)
    for (let count = 0; count < 500; count += 1)
      first.fail(`user ${count}`, `198.51.${count >> 8}.${count & 255}`)
    const second = restart(first, limits)
    second.fail('carol', '192.0.2.1')
    expect(second.begin('carol', '192.0.2.2')).toBe(3_540)
  })

  it('a failure that could not be written is written later, and logged once', () => {
    const { log } = captureLog()
    const database = openDatabase(':memory:', log)
    const store = createGuessStore(database, 100)
    let isFull = true
    const guard = setUpGuard({
      database,
      store: {
        ...store,
        put: (...rows) => {
          if (isFull) throw Object.assign(new Error('database or disk is full'), { errcode: 13 })
          store.put(...rows)
        },
      },
    })
    guard.lock('bob', '192.0.2.1')
    expect(guard.begin('bob', '192.0.2.1')).toBe(900)
    expect(guard.lines.filter(({ level }) => level === 50)).toHaveLength(1)
    isFull = false
    guard.keep()
    expect(restart(guard).begin('bob', '192.0.2.1')).toBe(900)
  })
})
