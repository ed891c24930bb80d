import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bootPlatformPlant, comesMs, type PlatformPlant } from '../../e2e-long/platform-plant.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { eventually } from '../host/eventually.ts'
import { clusterClient } from './cluster-client.ts'
import { askWorkload } from './workload.ts'

// The way through the platform, once; kills, restores and what goes wrong are in the long tests.
describe.skipIf(isKitMissing())('a platform with two hosts and a cluster on one of them', () => {
  let plant: PlatformPlant
  let uid: string
  beforeAll(async () => {
    plant = await bootPlatformPlant(2)
  })
  afterAll(() => (plant as PlatformPlant | undefined)?.unplug())
  const says = (words: string) =>
    eventually(async () => expect(await askWorkload(plant.hosts[0]!)).toBe(words), comesMs)

  it('the cluster comes on the host that is named, and the other one stays free', async () => {
    uid = await plant.create(plant.hosts[0]!, 'plant', 'good morning')
    await plant.untilWanted(uid, 'Applied')
    await eventually(async () => expect((await plant.shown(uid)).status.state).toBe('Running'), comesMs)
    await says('good morning')
    expect(await clusterClient(plant.hosts[1]!).details()).toBeUndefined()
  })

  it('a change of a value arrives, and a watch ends when the host has applied it', async () => {
    const variables = [{ name: 'greeting', value: 'good evening' }]
    await plant.ask('PATCH', `/v1/spectroclusters/${uid}/variables`, [
      { profileUid: plant.profileUid, variables },
    ])
    const command = ['edgeplatformctl', 'cluster', 'watch', 'plant']
    expect(await plant.platform.run(command, { timeoutMs: comesMs })).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('Applied') as string,
    })
    await says('good evening')
  })

  it('the cluster is deleted on its host, and both sides forget it', async () => {
    await plant.ask('DELETE', `/v1/spectroclusters/${uid}`)
    await plant.untilForgotten(uid)
    await clusterClient(plant.hosts[0]!).gone(60_000)
  })
})
