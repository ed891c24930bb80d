import { describe, expect, it } from 'vitest'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { eventually } from '../host/eventually.ts'
import { bootForTests } from './boot-for-tests.ts'
import { expectWorks } from './workload.ts'

const plant = bootForTests()

/** Kills the first process with these arguments that appears, when the condition is met too. */
const killWhenSeen = (pattern: string, condition: () => Promise<void> = () => Promise.resolve()) =>
  eventually(async () => {
    await condition()
    const { stdout } = await plant.host.run(['pgrep', '--newest', '--full', pattern])
    const pid = stdout.trim()
    expect(pid, `no process ${pattern} yet`).not.toBe('')
    await plant.host.output(['kill', '-KILL', pid])
  }, 120_000)

const reasonsSoFar = async () => (await plant.cluster.ownEvents()).map(({ reason }) => reason)

describe.skipIf(isKitMissing())('programs that are killed while a cluster is made', () => {
  it('kubeadm and helm are killed: what they left is cleared, they run again, and the cluster runs', async () => {
    await plant.cluster.create()
    await killWhenSeen('kubeadm init')
    await eventually(async () => expect(await reasonsSoFar()).toContain('BootstrapReset'), 60_000)
    // Killed earlier, helm leaves nothing.
    await killWhenSeen('helm upgrade', async () => {
      const pending = await plant.cluster.kubectl(
        'get',
        'secret',
        '-A',
        '-l',
        'status=pending-install',
        '-o',
        'name',
      )
      expect(pending).toContain('secret/')
    })
    await plant.cluster.reach('Running')
    expect(await reasonsSoFar()).toContain('ReleaseCured')
    await expectWorks(plant, plant.cluster)
  })

  // The kubelet last: for some minutes after its start it is slow to start a static pod without an API server.
  it.each(['etcd', 'kube-apiserver', 'containerd', 'kubelet'])(
    '%s is killed while the cluster runs: it is started again, and the cluster is Healthy',
    async (program) => {
      const units: Readonly<Record<string, string>> = {
        containerd: 'edgehostd-containerd.service',
        kubelet: 'kubelet.service',
      }
      const pidOf = async () =>
        units[program]
          ? (
              await plant.host.output(['systemctl', 'show', '--property=MainPID', '--value', units[program]])
            ).trim()
          : (
              await plant.host.output([
                'pgrep',
                '--oldest',
                '--full',
                `^(/usr/local/bin/)?${program} --advertise`,
              ])
            ).trim()
      const pid = await pidOf()
      expect(Number(pid)).toBeGreaterThan(1)
      await plant.host.output(['kill', '-KILL', pid])
      await eventually(async () => {
        const now = await pidOf()
        expect(['', '0', pid]).not.toContain(now)
        // The kubelet starts a static pod again later each time.
      }, 150_000)
      await expectWorks(plant, plant.cluster)
      await eventually(async () => {
        const status = (await plant.cluster.details())?.status
        expect(status).toMatchObject({ phase: 'Running', health: { status: 'Healthy' } })
        expect(status!.steps.map(({ state }) => state)).not.toContain('failed')
      }, 90_000)
    },
  )

  it('the power is cut while the cluster runs: after the boot it is Healthy again', async () => {
    await plant.host.cutPower()
    await expectWorks(plant, plant.cluster, 120_000)
    await plant.cluster.expectHealthy(120_000)
    await plant.cluster.remove()
    await plant.expectRestored()
  })
})
