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

it('is due a minute after the start where there is no inventory, though devices come and go', () => {
  const { schedule, pass } = start()
  expect(schedule.isDue('a')).toBe(false)
  pass(minuteMs - 1)
  expect(schedule.isDue('a b')).toBe(false)
  pass(1)
  expect(schedule.isDue('a')).toBe(true)
})

it('is due a day after the last reading, and when the clock was set back before it', () => {
  const { schedule, time, pass } = start({ readAt: 10 * dayMs, devices: 'a' })
  expect(schedule.isDue('a')).toBe(false)
  pass(dayMs - 1)
  expect(schedule.isDue('a')).toBe(false)
  pass(1)
  expect(schedule.isDue('a')).toBe(true)
  time.now = 9 * dayMs
  expect(schedule.isDue('a')).toBe(true)
})

it('is due an hour after a reading in which a part gave no answer, not where a tool is missing', () => {
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

it('is due a minute after the devices changed for the last time', () => {
  const { schedule, pass } = start({ readAt: 10 * dayMs, devices: 'a' })
  expect(schedule.isDue('a b')).toBe(false)
  pass(minuteMs - 1)
  expect(schedule.isDue('a b c')).toBe(false)
  pass(minuteMs - 1)
  expect(schedule.isDue('a b c')).toBe(false)
  pass(1)
  expect(schedule.isDue('a b c')).toBe(true)
})

it('is not due for a device that came and went again', () => {
  const { schedule, pass } = start({ readAt: 10 * dayMs, devices: 'a' })
  schedule.isDue('a b')
  schedule.isDue('a')
  pass(10 * minuteMs)
  expect(schedule.isDue('a')).toBe(false)
})

it('sees at the start what came while the daemon was away', () => {
  const { schedule, pass } = start({ readAt: 10 * dayMs, devices: 'a' })
  expect(schedule.isDue('a b')).toBe(false)
  pass(minuteMs)
  expect(schedule.isDue('a b')).toBe(true)
})
