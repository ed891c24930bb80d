import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { clusterClient, type ClusterClient } from '../../e2e/cluster/cluster-client.ts'
import { bootClusterHost, type ClusterHost } from '../../e2e/cluster/cluster-host.ts'
import { expectRestored, readHostState, type HostState } from '../../e2e/cluster/host-state.ts'
import { killAtRandom } from '../../e2e/cluster/kills.ts'
import { expectWorks } from '../../e2e/cluster/workload.ts'
import { isKitMissing } from '../../support/kubernetes-kit.ts'

let plant: ClusterHost | undefined
const host = () => plant!.host
let cluster: ClusterClient
let before: HostState

async function removeAndCompare(): Promise<void> {
  await cluster.remove()
  await expectRestored(host(), before)
}

describe.skipIf(isKitMissing())(
  'clusters that are made and deleted again on one host',
  { timeout: 1_200_000 },
  () => {
    beforeAll(async () => {
      plant = await bootClusterHost()
      cluster = clusterClient(plant)
      before = await readHostState(host())
    })
    afterAll(() => plant?.host.unplug())

    it.each([1, 2, 3, 4, 5])(
      'cluster %i runs, and after its deletion the host is as before',
      async (round) => {
        await cluster.create({ name: `plant-${round}` })
        await cluster.reach('Running')
        await expectWorks(plant!, cluster)
        await removeAndCompare()
      },
    )

    it.each([11, 12, 13])(
      'the daemon is killed at 10 random moments of its set-up (seed %i) and during its deletion: it runs, and leaves nothing',
      async (seed) => {
        await cluster.create({ name: `killed-${seed}` })
        const stop = new AbortController()
        const killing = killAtRandom(host(), { seed, count: 10, mostMs: 7_000 }, stop.signal)
        await cluster.reach('Running')
        // The rest of the ten, at a running cluster.
        expect(await killing).toBe(10)
        await cluster.reach('Running')
        await expectWorks(plant!, cluster)
        const during = killAtRandom(host(), { seed, count: 10, mostMs: 2_000 }, stop.signal)
        await removeAndCompare()
        stop.abort()
        await during
      },
    )
  },
)
