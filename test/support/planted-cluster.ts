import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClusterStore, type NewCluster } from '../../src/cluster/cluster-store.ts'
import { canonicalText } from '../../src/cluster/desired/configuration.ts'
import { createEventLog } from '../../src/cluster/events/event-log.ts'
import type { ClusterConfiguration } from '../../src/cluster/schemas.ts'
import { createRevisionStore, createSealed } from '../../src/cluster/desired/revisions.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { captureLog } from './https-server.ts'
import { wantedCluster, wantedPack } from './cluster-parts.ts'
import type { TestEdge } from './test-edge.ts'

/** What is posted to create the planted cluster. */
export const postedCluster: ClusterConfiguration = {
  metadata: { name: 'edge-1', labels: { site: 'press-hall' } },
  spec: {
    archiveUploadPath: '/var/lib/edgehostd/definitions/0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44',
    profileVariables: [
      { name: 'replicas', value: '2' },
      { name: 'password', value: '********' },
    ],
    cloudConfig: {
      spec: {
        clusterConfig: { controlPlaneEndpoint: { host: '', type: 'VIP' }, ntpServers: [], sshKeys: [] },
        machinePoolConfig: [{ name: 'control-plane-pool', hosts: [{ hostUid: 'edge-test' }], size: 1 }],
      },
    },
  },
}

/**
 * Stores a cluster on an edge, as if it had been accepted, unless it has one. Nothing is made of it until the edge is started.
 * @param content digests of what it needs of the content
 * @param posted what was posted to create it
 */
export function plantCluster(
  { database, secret, stateDirectory, clock }: TestEdge,
  content: readonly string[] = [],
  posted = postedCluster,
): void {
  const sealed = createSealed(createSecrets(secret))
  const store = createClusterStore(database, sealed)
  if (store.current()) return
  const wanted = wantedCluster({ packs: [wantedPack('web')] })
  const folder = join(stateDirectory, 'cluster', wanted.uid, '1')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'wanted.json'), JSON.stringify({ ...wanted, folder }))
  writeFileSync(join(folder, 'details.json'), '[]')
  const cluster: NewCluster = {
    ...{
      ...{ uid: wanted.uid, name: wanted.name, generation: 1, folder },
      posted,
      sensitive: ['correct horse'],
      at: clock.now(),
    },
    mark: sealed.mark(canonicalText(posted)),
    summary: {
      kubernetes: wanted.kubernetes,
      node: wanted.node,
      definition: { name: 'factory', version: '1.0.0', sha256: 'a'.repeat(64) },
      content,
    },
  }
  store.add(cluster)
  const { spec } = posted
  createRevisionStore(database, sealed).add({
    ...{ ...cluster, by: 'alice', origin: 'create', outcome: 'applying', scheduleAt: null },
    plain: {
      ...posted,
      spec: {
        ...spec,
        profileVariables: [
          { name: 'replicas', value: '2' },
          { name: 'password', value: 'correct horse' },
        ],
      },
    },
  })
  const events = createEventLog({
    ...{ database, limits: { retentionDays: 90, maximum: 5_000 }, clock, log: captureLog().log },
  })
  events.add({ clusterUid: wanted.uid, reason: 'Accepted', message: 'the cluster edge-1 is accepted' })
}
