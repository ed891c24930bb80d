import { describe, expect, it } from 'vitest'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { eventually } from '../../e2e/host/eventually.ts'
import { bootForTests } from '../../e2e/cluster/boot-for-tests.ts'
import { clusterPath } from '../../e2e/cluster/cluster-client.ts'
import { killAtBoundaries, killAtRandom } from '../../e2e/cluster/kills.ts'
import { expectWorks } from '../../e2e/cluster/workload.ts'

const plant = bootForTests()

describe.skipIf(isKitMissing())(
  'a daemon that is killed while it makes a cluster',
  { timeout: 420_000 },
  () => {
    it('is killed at every step boundary: each step of a program runs once, and the cluster runs', async () => {
      const { onLook, kills } = killAtBoundaries(plant.host)
      await plant.cluster.create()
      await plant.cluster.reach('Running', { onLook, timeoutMs: 360_000 })
      await expectWorks(plant, plant.cluster)
      expect(kills.length).toBeGreaterThan(8)
      const reasons = (await plant.cluster.ownEvents()).map(({ reason }) => reason)
      expect(reasons).toContain('StepFoundAgain')
      // What runs outside of the daemon is not cut off by its end.
      expect(reasons).not.toContain('BootstrapReset')
      expect(reasons.filter((reason) => reason === 'ControlPlaneStarted')).toHaveLength(1)
      expect(reasons).not.toContain('ReleaseCured')
    })

    it('is killed at every step boundary of a deletion: the host is as before', async () => {
      const { onLook, kills } = killAtBoundaries(plant.host)
      const reply = await plant.host.http('DELETE', clusterPath, { token: plant.token })
      expect(reply, reply.text).toMatchObject({ status: 204 })
      await eventually(async () => {
        const details = await plant.cluster.details()
        if (details) await onLook(details)
        expect(details).toBeUndefined()
      }, 120_000)
      expect(kills.length).toBeGreaterThan(0)
      await plant.expectRestored()
    })

    it('is killed 10 times at random moments: the cluster runs', async () => {
      const stop = new AbortController()
      await plant.cluster.create()
      const killing = killAtRandom(plant.host, { seed: 907, count: 10, mostMs: 8_000 }, stop.signal)
      await plant.cluster.reach('Running', { timeoutMs: 360_000 })
      stop.abort()
      expect(await killing).toBeGreaterThan(3)
      await expectWorks(plant, plant.cluster)
      await plant.cluster.remove()
      await plant.expectRestored()
    })
  },
)
