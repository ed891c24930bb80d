import { describe, expect, it } from 'vitest'
import { bootForTests } from '../../e2e/cluster/boot-for-tests.ts'
import { expectWorks } from '../../e2e/cluster/workload.ts'
import { eventually } from '../../e2e/host/eventually.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'

const plant = bootForTests()

describe.skipIf(isKitMissing())('power cuts', { timeout: 1_200_000 }, () => {
  it('the power is cut once in each step: the cluster runs, and is Healthy after another cut', async () => {
    const { host } = plant
    const cut = new Set<string>()
    await plant.cluster.create()
    await plant.cluster.reach('Running', {
      timeoutMs: 900_000,
      async onLook({ status: { steps } }) {
        const running = steps.find(({ key, state }) => state === 'running' && !cut.has(key))
        if (!running) return
        cut.add(running.key)
        await host.cutPower()
      },
    })
    expect(cut.size).toBeGreaterThan(6)
    await expectWorks(plant, plant.cluster)
    await host.cutPower()
    await expectWorks(plant, plant.cluster, 180_000)
    await plant.cluster.expectHealthy(180_000)
  })

  it('the power is cut once in each step of a deletion: the cluster goes', async () => {
    const { host, token } = plant
    const cut = new Set<string>()
    expect(await host.http('DELETE', '/v1/edge-mgmt/cluster', { token })).toMatchObject({ status: 204 })
    await eventually(async () => {
      const details = await plant.cluster.details()
      const running = details?.status.steps.find(({ key, state }) => state === 'running' && !cut.has(key))
      if (running) {
        cut.add(running.key)
        await host.cutPower()
      }
      expect(details).toBeUndefined()
    }, 300_000)
    expect(cut.size).toBeGreaterThan(0)
  })
})
