import { expect, it } from 'vitest'
import type { ClusterRecord } from '../../../src/cluster/cluster-store.ts'
import { createDetails } from '../../../src/cluster/api/details.ts'
import type { Revision } from '../../../src/cluster/desired/revisions.ts'
import { pending, type ClusterStatus } from '../../../src/cluster/loop/status.ts'

const record = {
  ...{ uid: 'uid', name: 'plant', createdAt: 0, modifiedAt: 0, posted: { metadata: {} }, sensitive: [] },
  summary: {
    node: { name: 'edge', address: '10.0.0.1', poolName: 'control' },
    kubernetes: { version: '1.34.4' },
  },
} as unknown as ClusterRecord

const parts = {
  ...{ hostId: 'edge-1', architecture: 'amd64', version: '1', conditions: () => [], steps: () => [] },
  ...{ settings: () => undefined, troubles: () => [], deadline: () => undefined, pending: () => undefined },
  runningVersion: () => '',
  nics: () => [{ nicName: 'eth0', ip: '10.0.0.5', isDefault: true, dns: [] }],
  client: () => Promise.resolve(undefined),
  clock: { now: () => 0, monotonic: () => 0 },
}
const running: ClusterStatus = { ...pending, state: 'Running', phase: 'Running' }

it('the state is that of the end of a read, during which the API server fell silent', async () => {
  let stands = running
  const { details } = createDetails({
    ...parts,
    client() {
      stands = { ...stands, state: 'Error', phase: 'Unknown' }
      return Promise.reject(new Error('silent'))
    },
  })
  const { spec, status } = await details(record, () => stands, undefined)
  expect(status).toMatchObject({ clusterState: 'Error', phase: 'Unknown' })
  // Both published names of the id, and the interfaces.
  expect(spec.nodePools[0]?.hosts[0]).toMatchObject({
    ...{ hostUid: 'edge-1', hostID: 'edge-1' },
    nic: [{ nicName: 'eth0', ip: '10.0.0.5', isDefault: true, dns: [] }],
  })
})

it('the version that runs is told, and beside it the one to which it is being changed', async () => {
  const versions = async (runningVersion: string) => {
    const { details } = createDetails({ ...parts, runningVersion: () => runningVersion })
    const { k8sVersion, k8sTargetVersion } = (await details(record, () => running, undefined)).status
    return [k8sVersion, k8sTargetVersion]
  }
  expect(await versions('1.33.13')).toEqual(['1.33.13', '1.34.4'])
  expect(await versions('1.34.4')).toEqual(['1.34.4', undefined])
  // Before anything runs.
  expect(await versions('')).toEqual(['1.34.4', undefined])
})

it('a held revision is in the details with its reason, masked', async () => {
  const held = {
    ...{ generation: 3, outcome: 'held', reason: 'hunter2 is no port', sensitive: ['hunter2'] },
    scheduleAt: null,
  } as unknown as Revision
  const { details } = createDetails({ ...parts, pending: () => held })
  const { status } = await details(record, () => running, undefined)
  expect(status.pendingRevision).toEqual({ revision: 3, outcome: 'held', reason: '******** is no port' })
})
