import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createAnonymousLog, type AnonymousLog } from '../../../src/system/anonymous-log.ts'
import { captureLog } from '../../support/https-server.ts'
import { createTurningClock, type TurningClock } from '../../support/turning-clock.ts'

let clock: TurningClock
let captured: ReturnType<typeof captureLog>
let anonymousLog: AnonymousLog
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  clock = createTurningClock()
  captured = captureLog()
  anonymousLog = createAnonymousLog(captured.log, clock.monotonic)
})
afterEach(() => {
  anonymousLog.stop()
  vi.useRealTimers()
})

const said = (message: string) => captured.lines.filter(({ msg }) => msg === message).length
const leftOut = () => captured.lines.filter(({ msg }) => String(msg).includes('were left out'))

it('a flood writes six lines in any second, and one line a minute that counts the rest', () => {
  for (let ms = 0; ms < 60_000; ms += 10) {
    anonymousLog.info({}, ms % 20 === 0 ? 'one' : 'other')
    clock.turn(10)
    vi.advanceTimersByTime(10)
  }
  const lines = said('one') + said('other')
  expect(lines).toBeLessThanOrEqual(6 * 60)
  expect(lines).toBeGreaterThan(6 * 55)
  anonymousLog.stop()
  expect(leftOut().length).toBeLessThanOrEqual(3)
  const counted = leftOut().flatMap(({ counts }) => Object.values(counts as Record<string, number>))
  expect(lines + counted.reduce((sum, count) => sum + count, 0)).toBe(6_000)
})

it('reserved lines reduce the number of other lines', () => {
  for (let index = 0; index < 4; index += 1) anonymousLog.reserve()
  for (let index = 0; index < 4; index += 1) anonymousLog.warn({}, 'one')
  expect(said('one')).toBe(2)
  clock.turn(1_000)
  anonymousLog.warn({}, 'one')
  expect(said('one')).toBe(3)
})

it('a line below the level of the log does not count', () => {
  captured.log.level = 'info'
  for (let index = 0; index < 20; index += 1) anonymousLog.debug({}, 'quiet')
  anonymousLog.info({}, 'one')
  expect(captured.lines.map(({ msg }) => msg)).toEqual(['one'])
})

it('an error is written during a flood, and at most nine errors a second', () => {
  for (let index = 0; index < 20; index += 1) anonymousLog.info({}, 'one')
  anonymousLog.error({}, 'to be mended')
  expect([said('one'), said('to be mended')]).toEqual([6, 1])
  clock.turn(1_000)
  for (let index = 0; index < 20; index += 1) anonymousLog.error({}, 'to be mended')
  expect(said('to be mended')).toBe(1 + 9)
})
