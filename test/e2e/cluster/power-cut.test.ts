import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import type { Edgehostd } from '../host/edgehostd.ts'
import { eventually } from '../host/eventually.ts'
import { clusterClient, type ClusterClient } from './cluster-client.ts'
import { bootClusterHost, type ClusterHost } from './cluster-host.ts'
import { expectWorks } from './workload.ts'

let plant: ClusterHost | undefined
let cluster: ClusterClient

/** Waits until a process with these arguments runs, cuts the power of the host and boots it again. */
async function cutPowerDuring(host: Edgehostd, pattern: string): Promise<void> {
  await eventually(async () => {
    const { exitCode } = await host.run(['pgrep', '--full', pattern])
    expect(exitCode, `no process ${pattern} yet`).toBe(0)
  }, 120_000)
  await host.cutPower()
}

describe.skipIf(isKitMissing())('a power cut while a cluster is made', () => {
  beforeAll(async () => {
    plant = await bootClusterHost()
    cluster = clusterClient(plant)
  })
  afterAll(() => plant?.host.unplug())

  it('the power is cut during kubeadm init and while helm runs: the cluster runs', async () => {
    await cluster.create()
    await cutPowerDuring(plant!.host, 'kubeadm init')
    await cutPowerDuring(plant!.host, 'helm upgrade')
    await cluster.reach('Running')
    await expectWorks(plant!, cluster)
  })
})
