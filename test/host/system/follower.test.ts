import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createFollower, type FollowOptions } from '../../../src/system/follower.ts'
import { recordingLog } from '../../fixtures/host/edges.ts'
import { waitFor } from '../../support/wait-for.ts'

function follow(script: string, options: Partial<FollowOptions> = {}, pauses = {}) {
  const { log, lines: logged } = recordingLog()
  const lines: string[] = []
  const ends: string[] = []
  let starts = 0
  const following = createFollower({ log, firstPauseMs: 20, longestPauseMs: 80, ...pauses }).follow(
    '/bin/sh',
    ['-c', script],
    {
      onLine: (line) => lines.push(line),
      onStart: () => (starts += 1),
      onEnd: (reason) => ends.push(reason),
      ...options,
    },
  )
  onTestFinished(() => following.stop())
  /** Each pause before a new start, as it is logged. */
  const paused = () => logged.flatMap((line) => ('pauseMs' in line ? line.pauseMs : []))
  return { following, lines, ends, starts: () => starts, paused }
}
const until = (condition: () => void) => waitFor(condition, { timeout: 60_000, interval: 5 })

it('lines are passed on as they arrive, even in pieces', async () => {
  const { lines, following } = follow('printf "one\\ntw"; sleep 0.1; printf "o\\n"; exec sleep 60')
  await until(() => expect(lines).toEqual(['one', 'two']))
  expect(following.isRunning()).toBe(true)
})

it('a line is passed on unchanged where a write ends within a character', async () => {
  const { lines } = follow('printf "B\\303"; sleep 0.1; printf "\\274hne\\n"; exec sleep 60')
  await until(() => expect(lines).toEqual(['Bühne']))
})

it('a longer line is cut at 64 KiB, and the next line is whole', async () => {
  const { lines } = follow('head -c 1000000 /dev/zero | tr "\\0" x; echo; echo next; exec sleep 60')
  await until(() => expect(lines).toHaveLength(2))
  expect(lines).toEqual(['x'.repeat(65_536), 'next'])
})

it('a followed program that ended is started again, and the reason is reported', async () => {
  const { starts, ends } = follow('echo "no such thing" >&2; exit 3')
  await until(() => expect(starts()).toBeGreaterThan(2))
  expect(ends[0]).toBe('exit code 3: no such thing')
})

it('the pause before a new start doubles up to a limit', async () => {
  const times: number[] = []
  follow('exit 1', { onStart: () => times.push(performance.now()) })
  await until(() => expect(times.length).toBe(5))
  const pauses = times.slice(1).map((time, index) => time - times[index]!)
  for (const [index, least] of [20, 40, 80, 80].entries()) expect(pauses[index]).toBeGreaterThan(least - 2)
})

it('the pause is short again after a long run of the program', async () => {
  const { paused } = follow('sleep 0.1', {}, { wellAfterMs: 50 })
  await until(() => expect(paused().slice(0, 4)).toEqual([20, 20, 20, 20]))
})

it('a missing program is tried again', async () => {
  const { log } = recordingLog()
  const ends: string[] = []
  const following = createFollower({ log, firstPauseMs: 5 }).follow(
    join(import.meta.dirname, 'missing', 'ip'),
    [],
    {
      onLine: () => undefined,
      onEnd: (reason) => ends.push(reason),
    },
  )
  onTestFinished(() => following.stop())
  await until(() => expect(ends.length).toBeGreaterThan(1))
  expect(ends[0]).toBe('ENOENT')
  // A try may be under way.
  await until(() => expect(following.isRunning()).toBe(false))
})

it('the stop ends the program, which is not started again', async () => {
  const { following, lines, starts } = follow('echo $$; exec sleep 60')
  await until(() => expect(lines).toHaveLength(1))
  following.stop()
  await until(() => expect(() => process.kill(Number(lines[0]), 0)).toThrow('ESRCH'))
  expect(starts()).toBe(1)
})

it("a followed program gets nothing of the daemon's environment", async () => {
  process.env.EDGEHOSTD_CANARY = 'sings'
  onTestFinished(() => {
    delete process.env.EDGEHOSTD_CANARY
  })
  const { lines } = follow('echo "[$EDGEHOSTD_CANARY] $LC_ALL $PATH"; exec sleep 60')
  await until(() => expect(lines).toEqual(['[] C /usr/sbin:/usr/bin:/sbin:/bin']))
})
