import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createProgramWatch } from '../../../src/host/change-watch.ts'
import type { FollowOptions } from '../../../src/system/follower.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

function watched() {
  let options: FollowOptions | undefined
  const commands: string[] = []
  let isStopped = false
  const times: number[] = []
  const watch = createProgramWatch(
    'network',
    {
      follow(program, args, given) {
        commands.push([program, ...args].join(' '))
        options = given
        return { isRunning: () => true, stop: () => (isStopped = true) }
      },
    },
    () => times.push(performance.now()),
  )
  const begunAt = performance.now()
  watch.start()
  return {
    watch,
    commands,
    program: () => options!,
    changes: () => times.map((time) => Math.round(time - begunAt)),
    isStopped: () => isStopped,
  }
}

it('a reading follows once the program listens, since changes before were not reported', () => {
  const { watch, program, changes, commands } = watched()
  expect(commands).toEqual(['ip -o monitor link address route'])
  program().onStart!()
  expect(watch.isWatching()).toBe(false)
  vi.advanceTimersByTime(700)
  expect(watch.isWatching()).toBe(true)
  expect(changes()).toEqual([600])
})

it('a burst of events is one change, and a host that changes all the time is read once a second', () => {
  const { program, changes } = watched()
  for (let line = 0; line < 30; line += 1) program().onLine('2: eth0')
  vi.advanceTimersByTime(150)
  expect(changes()).toEqual([100])
  for (let tick = 0; tick < 300; tick += 1) {
    program().onLine('2: eth0')
    vi.advanceTimersByTime(10)
  }
  vi.advanceTimersByTime(1_000)
  expect(changes()).toEqual([100, 1_100, 2_100, 3_100, 4_100])
})

it('a part does not count as watched after its program has ended', () => {
  const { watch, program, changes } = watched()
  program().onStart!()
  vi.advanceTimersByTime(700)
  program().onEnd!('exit code 1')
  expect(watch.isWatching()).toBe(false)
  program().onStart!()
  vi.advanceTimersByTime(2_000)
  expect(watch.isWatching()).toBe(true)
  expect(changes()).toHaveLength(2)
})

it('no change is reported after the stop', () => {
  const { watch, program, changes, isStopped } = watched()
  program().onLine('2: eth0')
  watch.stop()
  vi.advanceTimersByTime(5_000)
  expect(changes()).toEqual([])
  expect(isStopped()).toBe(true)
})
