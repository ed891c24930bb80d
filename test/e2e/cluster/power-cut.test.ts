import { describe, expect, it } from 'vitest'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import type { Edgehostd } from '../host/edgehostd.ts'
import { eventually } from '../host/eventually.ts'
import { bootForTests } from './boot-for-tests.ts'
import { expectWorks } from './workload.ts'

const plant = bootForTests()

/** Waits until a process with these arguments runs, cuts the power of the host and boots it again. */
async function cutPowerDuring(host: Edgehostd, pattern: string): Promise<void> {
  await eventually(async () => {
    const { exitCode } = await host.run(['pgrep', '--full', pattern])
    expect(exitCode, `no process ${pattern} yet`).toBe(0)
  }, 120_000)
  await host.cutPower()
}

describe.skipIf(isKitMissing())('a power cut while a cluster is made', () => {
  it('the power is cut during kubeadm init and while helm runs: the cluster runs', async () => {
    await plant.cluster.create()
    await cutPowerDuring(plant.host, 'kubeadm init')
    await cutPowerDuring(plant.host, 'helm upgrade')
    await plant.cluster.reach('Running')
    await expectWorks(plant, plant.cluster)
  })
})
