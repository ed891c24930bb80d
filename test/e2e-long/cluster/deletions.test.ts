import { describe, expect, it } from 'vitest'
import { bootForTests } from '../../e2e/cluster/boot-for-tests.ts'
import { clusterPath } from '../../e2e/cluster/cluster-client.ts'
import { eventually } from '../../e2e/host/eventually.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'

const plant = bootForTests()

/** Stops the containerd of the cluster, as one that does not answer any more. */
const hangContainerd = () =>
  plant.host.sh('kill -STOP "$(systemctl show --property MainPID --value edgehostd-containerd)"')

async function askForDeletion(): Promise<void> {
  const reply = await plant.host.http('DELETE', clusterPath, { token: plant.token })
  expect(reply, reply.text || reply.failure).toMatchObject({ status: 204 })
}

describe.skipIf(isKitMissing())('a deletion with obstacles', { timeout: 1_200_000 }, () => {
  it('containerd hangs, and the power is cut while kubeadm ends the pods: the host becomes as before', async () => {
    await plant.cluster.create()
    await plant.cluster.reach('Running')
    await askForDeletion()
    await eventually(async () => {
      expect((await plant.host.run(['pgrep', '--full', 'kubeadm reset'])).exitCode).toBe(0)
      // Some pods have ended, others run.
      const pods = await plant.host.sh('ls /run/containerd/s | wc -l')
      expect(Number(pods)).toBeLessThan(8)
    }, 60_000)
    await hangContainerd()
    await plant.host.cutPower()
    await plant.cluster.gone(300_000)
    await plant.expectRestored()
  })

  it('containerd hangs, and does not come back: its pods are killed, and the host becomes as before', async () => {
    await plant.cluster.create()
    await plant.cluster.reach('Running')
    await hangContainerd()
    await askForDeletion()
    await plant.cluster.gone(600_000)
    await plant.expectRestored()
    const reasons = (await plant.cluster.ownEvents()).map(({ reason }) => reason)
    expect(reasons).toContain('HostRestored')
    expect(reasons).not.toContain('LeftoversFound')
  })
})
