import { describe, expect, it } from 'vitest'
import { bootForTests } from '../../e2e/cluster/boot-for-tests.ts'
import { expectWorks } from '../../e2e/cluster/workload.ts'
import { eventually } from '../../e2e/host/eventually.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'

const plant = bootForTests({ version: '1.33.13' })

describe.skipIf(isKitMissing())('a cluster of the version before', { timeout: 1_200_000 }, () => {
  it('runs', async () => {
    await plant.cluster.create()
    const { status } = await plant.cluster.reach('Running')
    expect(status.k8sVersion).toBe('1.33.13')
    await expectWorks(plant, plant.cluster)
    expect(await plant.cluster.kubectl('get', 'nodes')).toContain('v1.33.13')
  })

  it('whose API server is silent for a minute is Unknown, and Running when it answers again', async () => {
    const { host } = plant
    // The kubelet starts it again after its probes have failed for longer than a minute.
    await host.output(['pkill', '-STOP', '--full', '^kube-apiserver|/kube-apiserver '])
    const { status } = await plant.cluster.reach('Unknown', { timeoutMs: 120_000 })
    expect(status.clusterState).toBe('Error')
    await host.run(['pkill', '-CONT', '--full', '^kube-apiserver|/kube-apiserver '])
    await plant.cluster.reach('Running', { timeoutMs: 180_000 })
    await eventually(
      async () => expect((await plant.cluster.details())?.status.health.status).toBe('Healthy'),
      90_000,
    )
  })
})
