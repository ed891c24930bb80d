import { describe, expect, it } from 'vitest'
import { clusterPath } from '../../e2e/cluster/cluster-client.ts'
import { wantVersion } from '../../e2e/cluster/cluster-host.ts'
import { killAtBoundaries } from '../../e2e/cluster/kills.ts'
import { expectWorks } from '../../e2e/cluster/workload.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { askAllTheTime, bootForUpgrade, podStarts, revisionsOf, storyOf, timesOf } from './upgrades.ts'

const plant = bootForUpgrade()

describe.skipIf(isKitMissing())('an upgrade of Kubernetes', { timeout: 1_800_000 }, () => {
  it('goes to the next minor version while the workload answers, and its pod is not started again', async () => {
    await expectWorks(plant, plant.cluster)
    const before = await podStarts(plant.cluster, 'shop')
    const asking = askAllTheTime(plant)
    const reply = await wantVersion(plant, '1.34.4')
    expect(reply, reply.text || reply.failure).toMatchObject({ status: 204 })
    const phases = new Set<string>()
    const { status } = await plant.cluster.reach('Running', {
      timeoutMs: 1_500_000,
      onLook: ({ status: { phase } }) => void phases.add(phase),
    })
    const { asked, failed } = await asking.end()
    process.stdout.write(`asked ${asked} times in the upgrade, ${failed} without an answer\n`)
    expect(status.k8sVersion, await storyOf(plant.cluster)).toBe('1.34.4')
    expect(phases).not.toContain('Unknown')
    expect(phases).not.toContain('Failed')
    expect(asked).toBeGreaterThan(100)
    expect(await podStarts(plant.cluster, 'shop')).toEqual(before)
    expect(await plant.cluster.kubectl('get', 'nodes')).toContain('v1.34.4')
    expect(await revisionsOf(plant.cluster)).toEqual([
      [2, '1.34.4', 'good'],
      [1, '1.33.13', 'good'],
    ])
    await expectWorks(plant, plant.cluster)
  })

  it('leaves one copy, and nothing in the folder of kubeadm', async () => {
    const { host } = plant
    expect(await host.output(['ls', '-A', '/var/lib/edgehostd/cluster/copies'])).toBe('2\n')
    expect((await host.run(['test', '-e', '/etc/kubernetes/tmp'])).exitCode).toBe(1)
  })

  it('is gone back from by hand only where the loss is accepted', async () => {
    await plant.cluster.kubectl('create', 'configmap', 'later')
    const { host, token } = plant
    const refused = await host.http('POST', `${clusterPath}/rollback`, { token, body: { revision: 1 } })
    expect(refused, refused.text).toMatchObject({ status: 409, json: { code: 'WouldDiscardChanges' } })
    const body = { revision: 1, discardChanges: true }
    const accepted = await host.http('POST', `${clusterPath}/rollback`, { token, body, timeoutMs: 120_000 })
    expect(accepted, accepted.text || accepted.failure).toMatchObject({ status: 204 })
    // Kills of the daemon change nothing: what runs outside of it continues.
    const { onLook, kills } = killAtBoundaries(host)
    const { status } = await plant.cluster.reach('Running', { timeoutMs: 900_000, onLook })
    expect(kills.length).toBeGreaterThan(0)
    expect(status.k8sVersion).toBe('1.33.13')
    expect(await plant.cluster.kubectl('get', 'nodes')).toContain('v1.33.13')
    await expect(plant.cluster.kubectl('get', 'configmap', 'later')).rejects.toThrow('NotFound')
    await expectWorks(plant, plant.cluster)
    const { restoreSeconds } = await timesOf(plant.cluster)
    process.stdout.write(`restored in ${restoreSeconds} s\n`)
  })

  it('comes to its end with a daemon that is killed at every step boundary', async () => {
    const { onLook, kills } = killAtBoundaries(plant.host)
    expect(await wantVersion(plant, '1.34.4')).toMatchObject({ status: 204 })
    const { status } = await plant.cluster.reach('Running', { timeoutMs: 1_500_000, onLook })
    expect(kills.length).toBeGreaterThan(5)
    expect(status.k8sVersion, await storyOf(plant.cluster)).toBe('1.34.4')
    await expectWorks(plant, plant.cluster)
  })

  it('is gone after a deletion, with its copies', async () => {
    await plant.cluster.remove()
    const { host } = plant
    expect((await host.run(['test', '-e', '/var/lib/edgehostd/cluster/copies'])).exitCode).toBe(1)
  })
})
