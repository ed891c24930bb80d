import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { clusterClient, clusterPath, type ClusterClient } from '../../e2e/cluster/cluster-client.ts'
import { bootClusterHost, type ClusterHost } from '../../e2e/cluster/cluster-host.ts'
import { expectRestored, readHostState, type HostState } from '../../e2e/cluster/host-state.ts'
import { eventually } from '../../e2e/host/eventually.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'

let plant: ClusterHost | undefined
const host = () => plant!.host
let cluster: ClusterClient
let before: HostState

/** Stops the containerd of the cluster, as one that does not answer any more. */
const hangContainerd = () =>
  host().sh('kill -STOP "$(systemctl show --property MainPID --value edgehostd-containerd)"')

async function askForDeletion(): Promise<void> {
  const reply = await host().http('DELETE', clusterPath, { token: plant!.token })
  expect(reply, reply.text || reply.failure).toMatchObject({ status: 204 })
}

describe.skipIf(isKitMissing())('a deletion with obstacles', { timeout: 1_200_000 }, () => {
  beforeAll(async () => {
    plant = await bootClusterHost()
    cluster = clusterClient(plant)
    before = await readHostState(host())
  })
  afterAll(() => plant?.host.unplug())

  it('containerd hangs, and the power is cut while kubeadm ends the pods: the host becomes as before', async () => {
    await cluster.create()
    await cluster.reach('Running')
    await askForDeletion()
    await eventually(async () => {
      expect((await host().run(['pgrep', '--full', 'kubeadm reset'])).exitCode).toBe(0)
      // Some pods have ended, others run.
      const pods = await host().sh('ls /run/containerd/s | wc -l')
      expect(Number(pods)).toBeLessThan(8)
    }, 60_000)
    await hangContainerd()
    await host().cutPower()
    await cluster.gone(300_000)
    await expectRestored(host(), before)
  })

  it('containerd hangs, and does not come back: its pods are killed, and the host becomes as before', async () => {
    await cluster.create()
    await cluster.reach('Running')
    await hangContainerd()
    await askForDeletion()
    await cluster.gone(600_000)
    await expectRestored(host(), before)
    const reasons = (await cluster.ownEvents()).map(({ reason }) => reason)
    expect(reasons).toContain('HostRestored')
    expect(reasons).not.toContain('LeftoversFound')
  })
})
