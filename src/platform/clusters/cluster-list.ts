import { formatTime } from '../../base/time.ts'
import type { ListResource } from '../../lists/resource.ts'
import { textColumn, type SqlField } from '../../lists/sql.ts'
import type { ProfileRecord } from '../profiles/profile-store.ts'
import type { PackRecord } from '../packs/pack-store.ts'
import { labelFilters } from '../label-filters.ts'
import { SpectroCluster, type ClusterProfileList, type ClusterTemplate } from '../schemas/clusters.ts'
import type { ClusterHead, ReportedCluster } from './cluster-store.ts'

/** What queries of the list of clusters may name. */
export const clusterList: ListResource<SqlField> = {
  name: 'clusters',
  key: 'metadata.uid',
  fields: {
    'metadata.uid': textColumn('uid'),
    'metadata.name': textColumn('name'),
    'metadata.creationTimestamp': { type: 'time', column: 'created_at' },
    'metadata.lastModifiedTimestamp': { type: 'time', column: 'modified_at' },
    'spec.edgeHost.uid': textColumn('host_uid'),
    'spec.number': { type: 'integer', column: 'number' },
    'status.state': textColumn('state'),
  },
  families: labelFilters,
  defaultOrder: [{ path: 'metadata.creationTimestamp', direction: -1 }],
  item: SpectroCluster,
}

/** What is known of a cluster beside its record. */
export interface ClusterContext {
  readonly hostName: string
  /** Milliseconds since 1970; undefined where the host was not heard since the start. */
  readonly heardAt: number | undefined
}

/** A cluster in the API. */
export function toCluster(
  cluster: ClusterHead & Partial<ReportedCluster>,
  { hostName, heardAt }: ClusterContext,
): SpectroCluster {
  const { uid, name, heartbeat, packs, steps } = cluster
  return {
    apiVersion: 'v1',
    kind: 'SpectroCluster',
    metadata: {
      ...{ annotations: cluster.annotations, labels: cluster.labels, name, uid },
      creationTimestamp: formatTime(cluster.createdAt),
      lastModifiedTimestamp: formatTime(cluster.modifiedAt),
    },
    spec: {
      cloudConfigRef: { kind: 'edge-native', name, uid },
      cloudType: 'edge-native',
      clusterProfileTemplates: [...cluster.templates],
      clusterType: 'PureManage',
      edgeHost: { name: hostName, uid: cluster.hostUid },
      number: cluster.number,
    },
    status: {
      conditions: [...cluster.conditions],
      isDeletionRequested: cluster.deleteRequestedAt !== undefined,
      state: cluster.state,
      ...(heartbeat && {
        agentVersion: heartbeat.agentVersion,
        ...(heartbeat.message === undefined ? {} : { message: heartbeat.message }),
        ...(heartbeat.number === undefined ? {} : { number: heartbeat.number }),
        ...(heartbeat.revision === undefined ? {} : { revision: heartbeat.revision }),
      }),
      ...(heardAt === undefined ? {} : { lastHeartbeatTimestamp: formatTime(heardAt) }),
      ...(packs ? { packs: [...packs] } : {}),
      ...(steps ? { steps: [...steps] } : {}),
    },
  }
}

/** A profile of a cluster, as it is now. */
export const toTemplate = (
  profile: ProfileRecord,
  packs: readonly (PackRecord | undefined)[],
): ClusterTemplate => ({
  ...{ cloudType: profile.cloudType, name: profile.name, profileVersion: profile.version },
  ...{ type: profile.type, uid: profile.uid },
  packs: profile.packs.map(({ name, tag, layer, type, version }, index) => ({
    ...{ name, tag, layer: layer || 'addon', type: type || 'spectro' },
    version: packs[index]?.version ?? (version || tag),
    packUid: packs[index]?.uid ?? '',
  })),
})

/** The profiles of a cluster in the API. */
export const toProfileList = ({ templates, modifiedAt }: ClusterHead): ClusterProfileList => ({
  profiles: templates.map(({ uid, name, cloudType, type, profileVersion, packs }) => ({
    metadata: { name, uid, lastModifiedTimestamp: formatTime(modifiedAt) },
    spec: {
      ...{ cloudType, type, profileVersion },
      packs: packs.map((pack) => ({
        metadata: { name: pack.name, uid: pack.packUid ?? '' },
        spec: { layer: pack.layer, name: pack.name, type: pack.type, version: pack.version ?? pack.tag },
      })),
    },
  })),
})
