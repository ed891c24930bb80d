import { describe, expect, it } from 'vitest'
import { runNameOf } from '../../../src/cluster/loop/step-runner.ts'
import { bootForTests } from '../../e2e/cluster/boot-for-tests.ts'
import { expectWorks } from '../../e2e/cluster/workload.ts'
import { eventually } from '../../e2e/host/eventually.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'

const plant = bootForTests()

const virtualAddress = '10.77.0.50'
const systemctl = (...args: string[]) => plant.host.output(['systemctl', ...args])
const property = async (unit: string, name: string) =>
  (await systemctl('show', `--property=${name}`, '--value', unit)).trim()

const stepOf = async (key: string) =>
  (await plant.cluster.details())?.status.steps.find((each) => each.key === key)

/** Waits until a step runs on the host. */
const untilRuns = (key: string) =>
  eventually(
    async () =>
      expect(await property(`edgehostd-step-${runNameOf(key)}.service`, 'ActiveState')).toBe('active'),
    120_000,
  )

describe.skipIf(isKitMissing())('what happens to a cluster by hand', { timeout: 900_000 }, () => {
  it('a port that is taken after the pre-flight is the reason; when it is free again, the cluster runs', async () => {
    await plant.cluster.create({
      clusterConfig: { controlPlaneEndpoint: { host: virtualAddress, type: 'VIP' } },
    })
    await plant.host.output('systemd-run --quiet --unit=taken socat TCP-LISTEN:10250,fork -'.split(' '))
    const { status } = await plant.cluster.reach('Failed')
    expect(status).toMatchObject({ clusterState: 'Error' })
    expect(status.clusterStateReason).toMatch(/Set up the control plane.*10250/)
    await systemctl('stop', 'taken')
    await plant.cluster.reach('Running')
    await expectWorks(plant, plant.cluster)
  })

  it('the virtual address is that of the API server, also after a reboot', async () => {
    const answers = async () => {
      expect((await plant.cluster.details())?.spec.vip).toBe(virtualAddress)
      expect(await plant.host.read('/etc/kubernetes/admin.conf')).toContain(`https://${virtualAddress}:6443`)
      const authority = '--cacert /etc/kubernetes/pki/ca.crt'
      const ask = `curl --silent --fail --max-time 5 ${authority} https://${virtualAddress}:6443/readyz`
      expect(await plant.host.output(ask.split(' '))).toBe('ok')
    }
    await answers()
    await plant.host.reboot()
    await eventually(answers, 180_000)
    await expectWorks(plant, plant.cluster, 120_000)
    await plant.cluster.expectHealthy(180_000)
  })

  it.each(['kubelet.service', 'edgehostd-containerd.service'])(
    '%s that is stopped is started again, and an event says both',
    async (unit) => {
      await systemctl('stop', unit)
      await eventually(async () => expect(await property(unit, 'ActiveState')).toBe('active'), 60_000)
      await expectWorks(plant, plant.cluster)
      await plant.cluster.expectHealthy(120_000)
      const reasons = (await plant.cluster.ownEvents()).map(({ reason }) => reason)
      const name = unit === 'kubelet.service' ? 'Kubelet' : 'ContainerRuntime'
      expect(reasons.indexOf(`${name}Started`)).toBeLessThan(reasons.indexOf(`${name}Stopped`))
      expect(reasons).toContain(`${name}Stopped`)
    },
  )

  it('a kubelet that does not start is an Error with its unit in the reason, and the cluster runs when it starts', async () => {
    const dropIn = '/etc/systemd/system/kubelet.service.d/broken.conf'
    await plant.host.write(dropIn, '[Service]\nExecStartPre=/bin/false\n')
    await systemctl('daemon-reload')
    await systemctl('stop', 'kubelet')
    const { status } = await plant.cluster.reach('Failed', { timeoutMs: 120_000 })
    expect(status).toMatchObject({ clusterState: 'Error', health: { status: 'Unhealthy' } })
    expect(status.clusterStateReason).toMatch(/kubelet\.service/)
    await plant.host.output(['rm', '-r', '/etc/systemd/system/kubelet.service.d'])
    await systemctl('daemon-reload')
    await plant.cluster.expectHealthy(180_000)
    await expectWorks(plant, plant.cluster)
    await plant.cluster.remove()
    await plant.expectRestored()
  })

  it('containerd, and then the daemon with its registry, are stopped while images are pulled: the cluster runs', async () => {
    await plant.cluster.create({ name: 'interrupted' })
    await untilRuns('pull-images')
    await systemctl('stop', 'edgehostd-containerd')
    // It is no registry that is away for a moment, which would be waited for.
    await eventually(async () => expect((await stepOf('pull-images'))?.state).toBe('failed'), 30_000)
    expect((await stepOf('pull-images'))?.reason).toMatch(/containerd/)

    await eventually(
      async () => expect(await stepOf('pull-images')).toMatchObject({ state: 'running' }),
      60_000,
    )
    await untilRuns('pull-images')
    await systemctl('stop', 'edgehostd.socket', 'edgehostd')
    const output = `/var/lib/edgehostd/cluster/steps/${runNameOf('pull-images')}/output`
    await eventually(async () => expect(await plant.host.read(output)).toContain('does not answer'), 60_000)
    await systemctl('start', 'edgehostd.socket', 'edgehostd')
    await plant.cluster.reach('Running')
    expect((await plant.cluster.ownEvents()).map(({ reason }) => reason)).toContain('StepFoundAgain')
    await expectWorks(plant, plant.cluster)
    await plant.cluster.remove()
    await plant.expectRestored()
  })
})
