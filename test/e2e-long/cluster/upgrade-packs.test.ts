import { beforeAll, describe, expect, it } from 'vitest'
import { clusterPath } from '../../e2e/cluster/cluster-client.ts'
import { wantVersion } from '../../e2e/cluster/cluster-host.ts'
import { clusterWrites, type ClusterWrites } from '../../e2e/cluster/cluster-writes.ts'
import { killDaemon } from '../../e2e/cluster/kills.ts'
import { readField } from '../../e2e/cluster/kubernetes-objects.ts'
import { webTemplate } from '../../e2e/cluster/plant-definition.ts'
import { askWorkload, expectWorks } from '../../e2e/cluster/workload.ts'
import { eventually } from '../../e2e/host/eventually.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { bootForUpgrade, podStarts } from './upgrades.ts'

const plant = bootForUpgrade()
let writes: ClusterWrites

const minorInPack = () => readField(plant.cluster, 'greeting', 'configmap/hello', '.data.minor')

describe.skipIf(isKitMissing())('an upgrade of Kubernetes whose pack fails', { timeout: 1_800_000 }, () => {
  beforeAll(async () => {
    writes = clusterWrites(plant, plant.cluster)
    await writes.settled()
  })

  it('goes back as a pack, also with a daemon that is killed meanwhile, and Kubernetes stays', async () => {
    const { host } = plant
    const since = new Date()
    const broken = webTemplate.replace(/command: .*/, "command: [/bin/busybox, sh, -c, 'exit 3']")
    const definition = { version: '1.1.0', webTemplate: broken }
    const reply = await wantVersion(plant, '1.34.4', { definition })
    expect(reply, reply.text || reply.failure).toMatchObject({ status: 204 })
    await eventually(async () => {
      expect((await plant.cluster.ownEvents()).map(({ reason }) => reason)).toContain('KubernetesGood')
    }, 1_200_000)
    // A restored copy would not have it.
    await plant.cluster.kubectl('create', 'configmap', 'later')
    // Not before: what an upgrade does first counts too.
    await host.configure('update', 'cluster: {update: {timeoutSeconds: 20}}\n')
    await eventually(async () => {
      expect(await writes.newest()).toMatchObject({ revision: 3, origin: 'goingBack' })
    }, 180_000)
    expect(await killDaemon(host)).toBe(true)
    await eventually(async () => {
      const [back, failed, first] = await writes.revisions()
      expect(back, JSON.stringify(back)).toMatchObject({
        ...{ revision: 3, outcome: 'good', isActive: true, by: '', kubernetesVersion: '1.34.4' },
        definition: { name: 'plant', version: '1.0.0' },
      })
      expect(failed).toMatchObject({ revision: 2, outcome: 'rolledBack', isActive: false })
      expect(failed!.reason).toMatch(
        /pod web-[\w-]+: container web: .*; the packs of revision 1 run again, as revision 3, and Kubernetes 1\.34\.4 stays$/,
      )
      expect(first).toMatchObject({ revision: 1, outcome: 'good', isActive: false })
    }, 300_000)
    await plant.cluster.expectHealthy(60_000)
    expect((await plant.cluster.details())?.status.k8sVersion).toBe('1.34.4')
    expect(await plant.cluster.kubectl('get', 'nodes')).toContain('v1.34.4')
    expect(await plant.cluster.kubectl('get', 'configmap', 'later', '--output=name')).toContain('later')
    await expectWorks(plant, plant.cluster)
    await writes.told(since, 'UpdateFailed', /container web/)
    await writes.told(
      since,
      'RollbackStarted',
      /revision 1 are applied again, as revision 3; Kubernetes 1\.34\.4/,
    )
    await writes.told(since, 'RolledBack', /Kubernetes 1\.34\.4 stays, since revision 2 failed/)
  })

  it('is followed by a write that keeps the definition, with the Kubernetes that runs', async () => {
    const since = new Date()
    await plant.host.configure('update', 'cluster: {}\n')
    await plant.cluster.expectHealthy(120_000)
    const control = await podStarts(plant.cluster, 'kube-system')
    expect(await minorInPack()).toBe('1.33')
    await writes.give({ greeting: 'good noon' })
    expect(await writes.settled()).toMatchObject({ revision: 4, kubernetesVersion: '1.34.4' })
    await writes.told(since, 'PreflightWarning', /Kubernetes 1\.34\.4 stays as it is configured/)
    expect(await minorInPack()).toBe('1.34')
    await eventually(async () => expect(await askWorkload(plant)).toBe('good noon'), 60_000)
    expect(await podStarts(plant.cluster, 'kube-system')).toEqual(control)
  })

  it('would still discard changes if it was rolled back by hand', async () => {
    const { host, token } = plant
    const refused = await host.http('POST', `${clusterPath}/rollback`, { token, body: { revision: 1 } })
    expect(refused, refused.text).toMatchObject({ status: 409, json: { code: 'WouldDiscardChanges' } })
  })

  it('is followed by the mended definition, which does not touch Kubernetes', async () => {
    const control = await podStarts(plant.cluster, 'kube-system')
    const reply = await wantVersion(plant, '1.34.4', {
      definition: { version: '1.2.0' },
    })
    expect(reply, reply.text || reply.failure).toMatchObject({ status: 204 })
    expect(await writes.settled()).toMatchObject({
      ...{ revision: 5, kubernetesVersion: '1.34.4', definition: { name: 'plant', version: '1.2.0' } },
    })
    expect(await podStarts(plant.cluster, 'kube-system')).toEqual(control)
    expect(await plant.cluster.kubectl('get', 'configmap', 'later', '--output=name')).toContain('later')
  })
})
