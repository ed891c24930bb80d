import { describe, expect, it } from 'vitest'
import { bootForTests } from '../../e2e/cluster/boot-for-tests.ts'
import { killAtRandom } from '../../e2e/cluster/kills.ts'
import { expectWorks } from '../../e2e/cluster/workload.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'

const plant = bootForTests()

async function removeAndCompare(): Promise<void> {
  await plant.cluster.remove()
  await plant.expectRestored()
}

describe.skipIf(isKitMissing())(
  'clusters that are made and deleted again on one host',
  { timeout: 1_200_000 },
  () => {
    it.each([1, 2, 3, 4, 5])(
      'cluster %i runs, and after its deletion the host is as before',
      async (round) => {
        await plant.cluster.create({ name: `plant-${round}` })
        await plant.cluster.reach('Running')
        await expectWorks(plant, plant.cluster)
        await removeAndCompare()
      },
    )

    it.each([11, 12, 13])(
      'the daemon is killed at 10 random moments of its set-up (seed %i) and during its deletion: it runs, and leaves nothing',
      async (seed) => {
        await plant.cluster.create({ name: `killed-${seed}` })
        const stop = new AbortController()
        const killing = killAtRandom(plant.host, { seed, count: 10, mostMs: 7_000 }, stop.signal)
        await plant.cluster.reach('Running')
        // The rest of the ten, at a running cluster.
        expect(await killing).toBe(10)
        await plant.cluster.reach('Running')
        await expectWorks(plant, plant.cluster)
        const during = killAtRandom(plant.host, { seed, count: 10, mostMs: 2_000 }, stop.signal)
        await removeAndCompare()
        stop.abort()
        await during
      },
    )
  },
)
