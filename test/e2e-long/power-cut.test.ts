import { expect, it } from 'vitest'
import { createRandom } from '../support/random.ts'
import { interruptAll, type Interruption } from '../e2e/power/interruptions.ts'

const random = createRandom(1401)

/** As many of each, in any order. */
function someRounds(ofEach: number): Interruption[] {
  const all = Array.from({ length: ofEach }, () => ['power cut', 'kill -9'] as const).flat()
  return random.several(all, all.length)
}

it(
  'after 100 power cuts and 100 kills at random moments exactly the published bundles are there, and whole',
  { timeout: 1_200_000 },
  async () => {
    const chains = [true, false].map((isStateOnDisk, at) => ({
      seed: 1401 + at,
      rounds: someRounds(50),
      isStateOnDisk,
    }))
    const done = await interruptAll(chains)
    for (const { published, takenUnanswered, leftUnanswered, resumed } of done) {
      expect(published).toBeGreaterThan(10)
      expect(takenUnanswered + leftUnanswered).toBeGreaterThan(10)
      expect(resumed).toBeGreaterThan(5)
    }
  },
)
