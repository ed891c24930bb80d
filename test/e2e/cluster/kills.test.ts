import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isKitMissing } from '../../support/kubernetes-kit.ts'
import { eventually } from '../host/eventually.ts'
import { clusterClient, clusterPath, type ClusterClient } from './cluster-client.ts'
import { bootClusterHost, type ClusterHost } from './cluster-host.ts'
import { expectRestored, readHostState, type HostState } from './host-state.ts'
import { killAtBoundaries, killAtRandom } from './kills.ts'
import { expectWorks } from './workload.ts'

let plant: ClusterHost | undefined
const host = () => plant!.host
let cluster: ClusterClient
let before: HostState

describe.skipIf(isKitMissing())(
  'a daemon that is killed while it makes a cluster',
  { timeout: 420_000 },
  () => {
    beforeAll(async () => {
      plant = await bootClusterHost()
      cluster = clusterClient(plant)
      before = await readHostState(host())
    })
    afterAll(() => plant?.host.unplug())

    it('is killed at every step boundary: each step of a program runs once, and the cluster runs', async () => {
      const { onLook, kills } = killAtBoundaries(host())
      await cluster.create()
      await cluster.reach('Running', { onLook, timeoutMs: 360_000 })
      await expectWorks(plant!, cluster)
      expect(kills.length).toBeGreaterThan(8)
      const reasons = (await cluster.ownEvents()).map(({ reason }) => reason)
      expect(reasons).toContain('StepFoundAgain')
      // What runs outside of the daemon is not cut off by its end.
      expect(reasons).not.toContain('BootstrapReset')
      expect(reasons.filter((reason) => reason === 'ControlPlaneStarted')).toHaveLength(1)
      expect(reasons).not.toContain('ReleaseCured')
    })

    it('is killed at every step boundary of a deletion: the host is as before', async () => {
      const { onLook, kills } = killAtBoundaries(host())
      const reply = await host().http('DELETE', clusterPath, { token: plant!.token })
      expect(reply, reply.text).toMatchObject({ status: 204 })
      await eventually(async () => {
        const details = await cluster.details()
        if (details) await onLook(details)
        expect(details).toBeUndefined()
      }, 120_000)
      expect(kills.length).toBeGreaterThan(0)
      await expectRestored(host(), before)
    })

    it('is killed 10 times at random moments: the cluster runs', async () => {
      const stop = new AbortController()
      await cluster.create()
      const killing = killAtRandom(host(), { seed: 907, count: 10, mostMs: 8_000 }, stop.signal)
      await cluster.reach('Running', { timeoutMs: 360_000 })
      stop.abort()
      expect(await killing).toBeGreaterThan(3)
      await expectWorks(plant!, cluster)
      await cluster.remove()
      await expectRestored(host(), before)
    })
  },
)
