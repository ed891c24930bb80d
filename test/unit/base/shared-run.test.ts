import { expect, it } from 'vitest'
import { createSharedRun } from '../../../src/base/shared-run.ts'

function setUp() {
  const runs: PromiseWithResolvers<undefined>[] = []
  const shared = createSharedRun(() => {
    const run = Promise.withResolvers<undefined>()
    runs.push(run)
    return run.promise
  })
  return { shared, runs }
}

it('callers that ask during a run share the next one, which begins when the first has ended', async () => {
  const { shared, runs } = setUp()
  const first = shared.run()
  const [second, third] = [shared.run(), shared.run()]
  expect(second).toBe(third)
  expect(runs).toHaveLength(1)
  runs[0]!.resolve(undefined)
  await first
  await expect.poll(() => runs.length).toBe(2)
  expect(shared.isRunning()).toBe(true)
  const fourth = shared.run()
  runs[1]!.resolve(undefined)
  await second
  await expect.poll(() => runs.length).toBe(3)
  runs[2]!.resolve(undefined)
  await fourth
  expect(shared.isRunning()).toBe(false)
})

it('a run that fails reaches its own callers only, and does not keep the next one from beginning', async () => {
  const { shared, runs } = setUp()
  const first = shared.run()
  const second = shared.run()
  runs[0]!.reject(new Error('broken'))
  await expect(first).rejects.toThrow('broken')
  await expect.poll(() => runs.length).toBe(2)
  runs[1]!.resolve(undefined)
  await second
})

it('the end is that of the last run that callers wait for', async () => {
  const { shared, runs } = setUp()
  await shared.ended()
  void shared.run()
  void shared.run()
  let hasEnded = false
  const ended = shared.ended().then(() => (hasEnded = true))
  runs[0]!.resolve(undefined)
  await expect.poll(() => runs.length).toBe(2)
  expect(hasEnded).toBe(false)
  runs[1]!.resolve(undefined)
  await ended
})
