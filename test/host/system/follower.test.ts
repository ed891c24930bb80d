import { expect, it, onTestFinished, vi } from 'vitest'
import { createFollower, type FollowOptions } from '../../../src/system/follower.ts'
import { recordingLog } from '../../fixtures/host/edges.ts'

function follow(script: string, options: Partial<FollowOptions> = {}, pauses = {}) {
  const { log } = recordingLog()
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
  return { following, lines, ends, starts: () => starts }
}
const until = (condition: () => void) => vi.waitFor(condition, { timeout: 5_000, interval: 5 })

it('hands over lines as they come, also those that arrive in pieces', async () => {
  const { lines, following } = follow('printf "one\\ntw"; sleep 0.1; printf "o\\n"; exec sleep 60')
  await until(() => expect(lines).toEqual(['one', 'two']))
  expect(following.isRunning()).toBe(true)
})

it('hands over a line as it was written where a write ends within a letter', async () => {
  const { lines } = follow('printf "B\\303"; sleep 0.1; printf "\\274hne\\n"; exec sleep 60')
  await until(() => expect(lines).toEqual(['Bühne']))
})

it('hands over 64 KiB of a line that is longer, and the next line whole', async () => {
  const { lines } = follow('head -c 1000000 /dev/zero | tr "\\0" x; echo; echo next; exec sleep 60')
  await until(() => expect(lines).toHaveLength(2))
  expect(lines).toEqual(['x'.repeat(65_536), 'next'])
})

it('starts the program again when it has ended, and says why it did', async () => {
  const { starts, ends } = follow('echo "no such thing" >&2; exit 3')
  await until(() => expect(starts()).toBeGreaterThan(2))
  expect(ends[0]).toBe('exit code 3: no such thing')
})

it('waits twice as long after each failure, up to a limit', async () => {
  const times: number[] = []
  follow('exit 1', { onStart: () => times.push(performance.now()) })
  await until(() => expect(times.length).toBe(5))
  const pauses = times.slice(1).map((time, index) => time - times[index]!)
  for (const [index, least] of [20, 40, 80, 80].entries()) expect(pauses[index]).toBeGreaterThan(least - 2)
})

it('begins with the short pause again after the program was well', async () => {
  const times: number[] = []
  follow(
    'sleep 0.1',
    { onStart: () => times.push(performance.now()) },
    { wellAfterMs: 50, longestPauseMs: 60_000, firstPauseMs: 100 },
  )
  // Doubled each time, the fifth start would come after 1.5 s of pauses.
  await until(() => expect(times.length).toBe(5))
  expect(times[4]! - times[0]!).toBeLessThan(1_800)
})

it('goes on trying where the program is not there', async () => {
  const { log } = recordingLog()
  const ends: string[] = []
  const following = createFollower({ log, firstPauseMs: 5 }).follow('/nonexistent/ip', [], {
    onLine: () => undefined,
    onEnd: (reason) => ends.push(reason),
  })
  onTestFinished(() => following.stop())
  await until(() => expect(ends.length).toBeGreaterThan(1))
  expect(ends[0]).toBe('ENOENT')
  expect(following.isRunning()).toBe(false)
})

it('ends the program at the stop and leaves it ended', async () => {
  const { following, lines, starts } = follow('echo $$; exec sleep 60')
  await until(() => expect(lines).toHaveLength(1))
  following.stop()
  await until(() => expect(() => process.kill(Number(lines[0]), 0)).toThrow('ESRCH'))
  expect(starts()).toBe(1)
})

it('gives the program nothing of our environment', async () => {
  process.env.EDGEHOSTD_CANARY = 'sings'
  onTestFinished(() => {
    delete process.env.EDGEHOSTD_CANARY
  })
  const { lines } = follow('echo "[$EDGEHOSTD_CANARY] $LC_ALL $PATH"; exec sleep 60')
  await until(() => expect(lines).toEqual(['[] C /usr/sbin:/usr/bin:/sbin:/bin']))
})
