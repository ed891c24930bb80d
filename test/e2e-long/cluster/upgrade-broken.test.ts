import { beforeAll, describe, expect, it } from 'vitest'
import { wantVersion, type VersionWish } from '../../e2e/cluster/cluster-host.ts'
import { expectWorks } from '../../e2e/cluster/workload.ts'
import { eventually } from '../../e2e/host/eventually.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { bootForUpgrade, revisionsOf, storyOf, timesOf } from './upgrades.ts'

const plant = bootForUpgrade()
const programs = '/var/lib/edgehostd/cluster/programs'

describe.skipIf(isKitMissing())('an upgrade of Kubernetes that breaks', { timeout: 1_800_000 }, () => {
  beforeAll(async () => {
    await plant.cluster.kubectl('create', 'configmap', 'before')
  })
  /** Waits until a step runs. */
  const stepRuns = (key: string) =>
    eventually(async () => {
      const steps = (await plant.cluster.details())?.status.steps ?? []
      expect(steps.find((each) => each.key === key)?.state).toBe('running')
    }, 300_000)

  /** Upgrades, breaks it, and expects everything as it was before. */
  async function expectBack(wish: VersionWish, breakIt: () => Promise<void>): Promise<void> {
    const reply = await wantVersion(plant, '1.34.4', wish)
    expect(reply, reply.text || reply.failure).toMatchObject({ status: 204 })
    const [[revision] = []] = await revisionsOf(plant.cluster)
    await breakIt()
    await eventually(
      async () => expect(await revisionsOf(plant.cluster)).toContainEqual([revision, '1.34.4', 'rolledBack']),
      1_200_000,
    )
    const { status } = await plant.cluster.reach('Running')
    expect(status.k8sVersion).toBe('1.33.13')
    expect(await plant.cluster.kubectl('get', 'nodes')).toContain('v1.33.13')
    expect(await plant.cluster.kubectl('get', 'configmap', 'before', '--output=name')).toContain('before')
    await expectWorks(plant, plant.cluster)
    const { restoreSeconds } = await timesOf(plant.cluster)
    process.stdout.write(`restored in ${restoreSeconds} s\n`)
  }

  it('by an argument that the API server does not know: the version before is back', async () => {
    const definition = { apiArguments: { 'no-such-argument': 'true' } }
    await expectBack({ definition }, async () => undefined)
  })

  it('by an image that is gone: the version before is back', async () => {
    const { host } = plant
    await expectBack({}, async () => {
      await stepRuns('kubernetes-copy')
      const image = 'registry.k8s.io/kube-apiserver:v1.34.4'
      const ctr = ['ctr', '--address', '/run/edgehostd-containerd/containerd.sock', '--namespace', 'k8s.io']
      await host.output([...ctr, 'images', 'rm', '--sync', image])
      // Pulls go to this host alone, and its registry is part of the daemon.
      await host.output(['rm', '-rf', '/var/lib/edgehostd/cluster/containerd-config/certs.d'])
    })
  })

  it('by a kubelet that does not start: the version before is back', async () => {
    const { host } = plant
    await expectBack({}, async () => {
      await stepRuns('kubernetes-copy')
      const kubelet = `${programs}/kubelet/1.34.4/kubelet`
      // It has a second name in the content.
      await host.output(['rm', kubelet])
      await host.write(kubelet, '#!/bin/sh\necho this kubelet does not start >&2\nexit 1\n', 0o755)
    })
    await host.output(['rm', '-rf', `${programs}/kubelet/1.34.4`])
  })

  it('a good one goes through afterwards', async () => {
    expect(await wantVersion(plant, '1.34.4')).toMatchObject({ status: 204 })
    const { status } = await plant.cluster.reach('Running', { timeoutMs: 1_500_000 })
    expect(status.k8sVersion, await storyOf(plant.cluster)).toBe('1.34.4')
    await expectWorks(plant, plant.cluster)
  })
})
