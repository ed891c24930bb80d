import { describe, expect, it } from 'vitest'
import { ask, beat, by, clusterWorld, create, report } from '../../support/cluster-world.ts'
import { minuteMs } from '../../support/turning-clock.ts'
import type { EdgeNativeMachine } from '../../../src/platform/clouds/schemas.ts'

const world = clusterWorld()

const listed = async (uid: string, pool = 'control-plane-pool', query = '') => {
  const url = `/v1/cloudconfigs/edge-native/${uid}/machinePools/${pool}/machines${query}`
  const { status, body } = await ask('GET', url)
  const found = JSON.parse(body) as { items: EdgeNativeMachine[]; listmeta: { count: number } }
  return { status, ...found }
}

describe('the machines of a cluster', () => {
  it('are its hosts', async () => {
    const host = await world.joined({ name: 'hall-9' })
    const nics = [{ nicName: 'eth0', ip: '192.0.2.7' }, { nicName: 'eth1' }]
    const disks = [{ size: 100 }, { size: 20 }]
    const size = { cpu: { cores: 4 }, memory: { sizeInMB: 7_900 }, disks }
    const facts = { device: { archType: 'arm64', nics, ...size }, host: { hostAddress: '192.0.2.7' } }
    expect((await ask('PUT', `/v1/edgehosts/${host.uid}`, { spec: facts }, by(host))).status).toBe(204)
    const uid = await create(host, { poolConfig: { name: 'plant' } })
    const { items, listmeta } = await listed(uid, 'plant')
    expect(listmeta.count).toBe(1)
    expect(items).toMatchObject([
      {
        ...{ apiVersion: 'v1', kind: 'Machine', metadata: { uid: host.uid, name: 'hall-9' } },
        spec: {
          edgeHostUid: host.uid,
          instanceType: { diskGiB: 120, memoryMiB: 7_900, name: 'arm64', numCPUs: 4 },
          nics: [
            { index: 0, networkName: 'eth0', privateIPs: ['192.0.2.7'] },
            { index: 1, networkName: 'eth1', privateIPs: [] },
          ],
          type: 'edge-native',
        },
        status: {
          addresses: [{ address: '192.0.2.7', type: 'InternalIP' }],
          ...{ instanceState: 'Pending', health: { conditions: [], state: '' } },
        },
      },
    ])
    const none = await listed(uid, 'plant', '?filters=metadata.name=hall-8')
    expect([none.status, none.items]).toEqual([200, []])
    expect((await listed(uid, 'other')).status).toBe(404)
  })

  it('have the state of the cluster on their host, until that is not heard any more', async () => {
    const host = await world.joined()
    const uid = await create(host)
    const stateOf = async () => (await listed(uid)).items[0]?.status.instanceState
    await beat(host)
    for (const [state, shown] of [
      ['Provisioning', 'Provisioning'],
      ['Error', 'Failed'],
      ['Running', 'Running'],
    ]) {
      await report(host, uid, { number: 1, state })
      expect(await stateOf()).toBe(shown)
    }
    const conditions = [{ type: 'Wanted', status: 'True', reason: 'Applied', message: 'revision 1' }]
    await ask('PATCH', `/v1/spectroclusters/${uid}/status/conditions`, conditions, by(host))
    // Heartbeats are written within a second.
    await expect
      .poll(async () => (await listed(uid)).items[0]?.status.health, { timeout: 60_000 })
      .toMatchObject({ conditions, state: 'healthy' })
    const { clock, rooms } = world.platform()
    clock.turn(4 * minuteMs)
    await rooms.hosts.jobs.find(({ name }) => name === 'silent-hosts')?.run()
    expect(await stateOf()).toBe('Unknown')
    await ask('DELETE', `/v1/spectroclusters/${uid}`)
    expect(await stateOf()).toBe('Deleting')
  })
})
