import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Sample } from '../../../src/base/sample.ts'
import { createJobs, type Jobs } from '../../../src/jobs/jobs.ts'
import type { Job } from '../../../src/root/room.ts'
import { cpuNow } from '../../support/cpu-time.ts'
import { captureLog } from '../../support/https-server.ts'
import { dayMs, hourMs, minuteMs } from '../../support/turning-clock.ts'

let stop = () => {}
beforeEach(() => void vi.useFakeTimers({ now: new Date('2026-01-01T00:00:00.500Z') }))
afterEach(() => {
  stop()
  vi.useRealTimers()
})

function setUp(...table: Job[]) {
  const { log, lines } = captureLog()
  const jobs = createJobs(table, { log, monotonic: () => performance.now() })
  jobs.background()
  stop = () => jobs.stop()
  return { jobs, lines }
}
const everySecond = { name: 'tick', schedule: '* * * * * *', stuckAfterMs: 3_000 }
const everyFiveSeconds = { name: 'tick', schedule: '*/5 * * * * *', stuckAfterMs: 3_000 }
const atHalfPast = { name: 'hourly', schedule: '0 30 * * * *', stuckAfterMs: 3_000 }
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)
/** Value of one of the figures of the only job. */
const figureOf = (
  jobs: Jobs,
  name: 'runs_total' | 'failures_total' | 'duration_seconds' | 'success_age_seconds',
) => (jobs.figures()[`edgehostd_job_${name}`] as readonly Sample[])[0]?.value
/** The wall clock alone; timers and the monotonic clock run as before. */
const setClock = (byMs: number) => vi.setSystemTime(Date.now() + byMs)

describe('a job', () => {
  it('a job runs by its schedule', async () => {
    const run = vi.fn()
    setUp({ ...everySecond, run })
    await pass(5_000)
    expect(run).toHaveBeenCalledTimes(5)
  })

  it('a job does not run before the start or after the stop', async () => {
    const run = vi.fn()
    const { jobs } = setUp({ ...everySecond, run })
    jobs.stop()
    expect(vi.getTimerCount()).toBe(0)
    await pass(5_000)
    expect(run).not.toHaveBeenCalled()
  })

  it('a job never overlaps itself', async () => {
    let end = () => {}
    const run = vi.fn(() => new Promise<void>((done) => (end = done)))
    setUp({ ...everySecond, run })
    await pass(5_000)
    expect(run).toHaveBeenCalledTimes(1)
    end()
    await pass(1_000)
    expect(run).toHaveBeenCalledTimes(2)
  })

  it.each([
    ['rejects', () => Promise.reject(new Error('broken'))],
    [
      'throws',
      () => {
        throw new Error('broken')
      },
    ],
  ])('a job that %s is logged and runs again', async (_what, fail) => {
    const run = vi.fn<() => Promise<void>>(fail)
    const { lines, jobs } = setUp({ ...everySecond, run })
    await pass(2_000)
    expect(run).toHaveBeenCalledTimes(2)
    expect(lines.filter(({ msg, job }) => msg === 'job failed' && job === 'tick')).toHaveLength(2)
    expect(jobs.isAlive()).toBe(true)
  })

  it('a job that runs longer than its limit is stuck until it ends', async () => {
    let end = () => {}
    const { jobs } = setUp({ ...everySecond, run: () => new Promise<void>((done) => (end = done)) })
    await pass(3_400)
    expect(jobs.isAlive()).toBe(true)
    await pass(300)
    expect(jobs.isAlive()).toBe(false)
    end()
    await pass(0)
    expect(jobs.isAlive()).toBe(true)
  })

  it('a stuck job stops the watchdog although other jobs run', async () => {
    const { jobs } = setUp(
      { ...everySecond, run: () => undefined },
      { ...everySecond, name: 'stuck', run: () => new Promise<void>(() => undefined) },
    )
    await pass(10_000)
    expect(jobs.isAlive()).toBe(false)
  })
})

describe('a wall clock that is set', () => {
  it.each([
    ['back by a day', -dayMs],
    ['back by a minute', -minuteMs],
    ['back by some seconds', -3_000],
    ['forward by some seconds', 3_000],
    ['forward by a minute', minuteMs],
    ['forward by a day', dayMs],
  ])('a wall clock that is set %s neither stops a job nor makes it run in a burst', async (_how, byMs) => {
    const begun: number[] = []
    const { jobs } = setUp({ ...everyFiveSeconds, run: () => void begun.push(performance.now()) })
    await pass(11_000)
    setClock(byMs)
    await pass(3 * minuteMs)
    expect(jobs.isAlive()).toBe(true)
    expect(figureOf(jobs, 'success_age_seconds')).toBeLessThanOrEqual(5)
    const pauses = begun.slice(1).map((at, index) => at - (begun[index] ?? 0))
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(1_000)
    expect(Math.max(...pauses)).toBeLessThanOrEqual(10_000)
    expect(begun.length).toBeGreaterThanOrEqual(36)
  })

  it('a clock that is set forward by weeks costs no extra work', async () => {
    setUp({ ...everyFiveSeconds, run: () => undefined })
    await pass(11_000)
    setClock(14 * dayMs)
    const before = cpuNow()
    await pass(10_000)
    // Milliseconds. To walk over the quarter of a million runs in between takes several seconds.
    expect(cpuNow() - before).toBeLessThan(500)
  })

  it('a missed run is not made up for when the clock is set forward', async () => {
    const run = vi.fn()
    setUp({ ...atHalfPast, run })
    setClock(5 * hourMs)
    await pass(29 * minuteMs)
    expect(run).not.toHaveBeenCalled()
    await pass(minuteMs)
    expect(run).toHaveBeenCalledTimes(1)
  })

  it('a job with a long wait runs at its time by the new clock', async () => {
    const run = vi.fn()
    setUp({ ...atHalfPast, run })
    // 23:29 of the day before.
    setClock(-31 * minuteMs)
    await pass(minuteMs)
    expect(run).toHaveBeenCalledTimes(1)
    await pass(hourMs)
    expect(run).toHaveBeenCalledTimes(2)
  })
})

describe('figures', () => {
  it('the figures count runs and failures, and have the age of the last success', async () => {
    let fails = false
    const { jobs } = setUp({
      ...everySecond,
      run: () => {
        if (fails) throw new Error('broken')
      },
    })
    expect(jobs.figures()).toEqual({
      edgehostd_job_runs_total: [{ labels: { job_name: 'tick' }, value: 0 }],
      edgehostd_job_failures_total: [{ labels: { job_name: 'tick' }, value: 0 }],
      edgehostd_job_duration_seconds: [],
      edgehostd_job_success_age_seconds: [],
    })
    await pass(2_000)
    fails = true
    await pass(3_000)
    expect(figureOf(jobs, 'runs_total')).toBe(5)
    expect(figureOf(jobs, 'failures_total')).toBe(3)
    expect(figureOf(jobs, 'duration_seconds')).toBe(0)
    expect(figureOf(jobs, 'success_age_seconds')).toBeGreaterThanOrEqual(3)
  })
})
