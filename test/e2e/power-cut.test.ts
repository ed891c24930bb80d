import { expect, it } from 'vitest'
import { interruptAll, type Interruption } from './power/interruptions.ts'

// The long form is test/e2e-long/power-cut.test.ts.
const rounds: readonly Interruption[] = Array.from({ length: 10 }, (_, round) =>
  round % 2 === 0 ? 'power cut' : 'kill -9',
)

it('after 5 power cuts and 5 kills at random moments exactly the published bundles are there, and whole', async () => {
  const halves = [rounds.slice(0, 5), rounds.slice(5)]
  const done = await interruptAll(
    halves.map((half, at) => ({ seed: at + 1, rounds: half, isStateOnDisk: at === 0 })),
  )
  expect(done.some(({ takenUnanswered, leftUnanswered }) => takenUnanswered + leftUnanswered > 0)).toBe(true)
})
