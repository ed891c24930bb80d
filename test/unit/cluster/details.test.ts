import { expect, it } from 'vitest'
import type { ClusterRecord } from '../../../src/cluster/cluster-store.ts'
import { createDetails } from '../../../src/cluster/api/details.ts'
import { pending, type ClusterStatus } from '../../../src/cluster/loop/status.ts'

const record = {
  ...{ uid: 'uid', name: 'plant', createdAt: 0, modifiedAt: 0, posted: { metadata: {} }, sensitive: [] },
  summary: {
    node: { name: 'edge', address: '10.0.0.1', poolName: 'control' },
    kubernetes: { version: '1.34.4' },
  },
} as unknown as ClusterRecord

it('the state is that of the end of a read, during which the API server fell silent', async () => {
  let stands: ClusterStatus = { ...pending, state: 'Running', phase: 'Running' }
  const { details } = createDetails({
    ...{
      hostId: 'edge-1',
      architecture: 'amd64',
      version: '1',
      conditions: () => [],
      steps: () => [],
      settings: () => undefined,
      scheduleAt: () => null,
      troubles: () => [],
      deadline: () => undefined,
      nics: () => [{ nicName: 'eth0', ip: '10.0.0.5', isDefault: true, dns: [] }],
    },
    client() {
      stands = { ...stands, state: 'Error', phase: 'Unknown' }
      return Promise.reject(new Error('silent'))
    },
    clock: { now: () => 0, monotonic: () => 0 },
  })
  const { spec, status } = await details(record, () => stands, undefined)
  expect(status).toMatchObject({ clusterState: 'Error', phase: 'Unknown' })
  // Both published names of the id, and the interfaces.
  expect(spec.nodePools[0]?.hosts[0]).toMatchObject({
    ...{ hostUid: 'edge-1', hostID: 'edge-1' },
    nic: [{ nicName: 'eth0', ip: '10.0.0.5', isDefault: true, dns: [] }],
  })
})
