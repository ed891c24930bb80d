import { expect, it } from 'vitest'
import { createSchedule } from '../../../src/inventory/schedule.ts'
import type { Reading } from '../../../src/inventory/stored-inventory.ts'

const minuteMs = 60_000
const dayMs = 86_400_000

function start(reading?: { readonly readAt: number; readonly devices: string }) {
  const time = { now: 10 * dayMs, monotonic: 0 }
  const state = { reading: reading as Reading | undefined }
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

it('is due where there is no inventory', () => {
  expect(start().schedule.isDue('a')).toBe(true)
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
