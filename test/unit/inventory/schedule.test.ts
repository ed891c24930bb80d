import { expect, it } from 'vitest'
import { createSchedule } from '../../../src/inventory/schedule.ts'
import { cannotBeRead, toolMissing, type Condition } from '../../../src/inventory/rules/tools.ts'
import type { Reading } from '../../../src/inventory/stored-inventory.ts'

const minuteMs = 60_000
const dayMs = 86_400_000

function start(reading?: Pick<Reading, 'readAt' | 'devices'>, conditions: Condition[] = []) {
  const time = { now: 10 * dayMs, monotonic: 0 }
  const state = { reading: reading && ({ ...reading, hardware: { conditions } } as Reading) }
  const schedule = createSchedule({
    clock: { now: () => time.now, monotonic: () => time.monotonic },
    stored: { current: () => state.reading, put: () => undefined },
  })
  const pass = (ms: number) => {
    time.now += ms
    time.monotonic += ms
  }
  return { schedule, time, state, pass }
}

it('the first reading is due a minute after the start, even while devices change', () => {
  const { schedule, pass } = start()
  expect(schedule.isDue('a')).toBe(false)
  pass(minuteMs - 1)
  expect(schedule.isDue('a b')).toBe(false)
  pass(1)
  expect(schedule.isDue('a')).toBe(true)
})

it('a reading is due a day after the last one, and when the clock was set back before it', () => {
  const { schedule, time, pass } = start({ readAt: 10 * dayMs, devices: 'a' })
  expect(schedule.isDue('a')).toBe(false)
  pass(dayMs - 1)
  expect(schedule.isDue('a')).toBe(false)
  pass(1)
  expect(schedule.isDue('a')).toBe(true)
  time.now = 9 * dayMs
  expect(schedule.isDue('a')).toBe(true)
})

it('a reading is due an hour after one in which a part could not be read, but not for a missing tool', () => {
  const reading = { readAt: 10 * dayMs, devices: 'a' }
  const silent = start(reading, [cannotBeRead('system', 'timed-out')])
  silent.pass(60 * minuteMs - 1)
  expect(silent.schedule.isDue('a')).toBe(false)
  silent.pass(1)
  expect(silent.schedule.isDue('a')).toBe(true)
  const missing = start(reading, [toolMissing('lspci')])
  missing.pass(60 * minuteMs)
  expect(missing.schedule.isDue('a')).toBe(false)
})

it('a reading is due a minute after the last change of the devices', () => {
  const { schedule, pass } = start({ readAt: 10 * dayMs, devices: 'a' })
  expect(schedule.isDue('a b')).toBe(false)
  pass(minuteMs - 1)
  expect(schedule.isDue('a b c')).toBe(false)
  pass(minuteMs - 1)
  expect(schedule.isDue('a b c')).toBe(false)
  pass(1)
  expect(schedule.isDue('a b c')).toBe(true)
})

it('no reading is due for a device that was added and removed again', () => {
  const { schedule, pass } = start({ readAt: 10 * dayMs, devices: 'a' })
  schedule.isDue('a b')
  schedule.isDue('a')
  pass(10 * minuteMs)
  expect(schedule.isDue('a')).toBe(false)
})

it('a device that was added while the daemon was stopped makes a reading due', () => {
  const { schedule, pass } = start({ readAt: 10 * dayMs, devices: 'a' })
  expect(schedule.isDue('a b')).toBe(false)
  pass(minuteMs)
  expect(schedule.isDue('a b')).toBe(true)
})
