import { hidden, type Compared } from '../../base/described-change.ts'
import type { GivenVariable } from '../../definition/definition.ts'
import { formatTime } from '../../base/time.ts'
import type { ListResource } from '../../lists/resource.ts'
import { textColumn, type SqlField } from '../../lists/sql.ts'
import type { ProfileRecord } from '../profiles/store.ts'
import type { PackRecord } from '../packs/store.ts'
import type { Silence } from '../hosts/heartbeats.ts'
import { labelFilters } from '../names.ts'
import {
  type ClusterCondition,
  SpectroCluster,
  type ClusterProfileList,
  type ClusterTemplate,
} from './schemas.ts'
import type { ClusterHead, ClusterRecord, ReportedCluster } from './store.ts'
import type { Given } from './values.ts'
import { usualPoolName } from '../../cluster/desired/configuration.ts'
import type { HostRecord } from '../hosts/store.ts'
import type { EdgeNativeCloudConfig } from '../clouds/schemas.ts'

/** Queryable fields of the list of clusters. */
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

/** Facts about a cluster beside its record. */
export interface ClusterContext {
  readonly hostName: string
  /** Silence of its host. */
  readonly silence: Silence
  /** The last report of the cluster since the start, milliseconds since 1970; undefined for none. */
  readonly lastSeenAt: number | undefined
}

const hostSilent = 'HostSilent'

/** Whether the host of a cluster answers. All else that is shown of the cluster is as old as its last report. */
export function silenceCondition({
  hostName,
  silence: { isSilent, isUnknown, lastSeen },
}: ClusterContext): ClusterCondition {
  const at = lastSeen === undefined ? undefined : formatTime(lastSeen)
  const since = at === undefined ? 'has never been seen' : `was last seen at ${at}`
  return {
    type: hostSilent,
    status: isSilent ? 'True' : isUnknown ? 'Unknown' : 'False',
    reason: isSilent
      ? 'NoHeartbeat'
      : at === undefined
        ? 'NotSeenYet'
        : isUnknown
          ? 'NotSeenSinceStart'
          : 'Seen',
    message: isSilent
      ? `the host ${hostName} does not answer and ${since}; what is shown of it is that old, and a change waits until it is seen again`
      : isUnknown && at !== undefined
        ? `the platform was started and has not heard the host ${hostName} since, which ${since}; what is shown of it is that old. Hosts speak each minute: after three it counts as silent`
        : '',
    ...(at === undefined ? {} : { lastProbeTime: at }),
  }
}

/** Time of the last report of the cluster, milliseconds since 1970; before the start the host's, which is at least as old. */
const lastSeenOf = (
  { heartbeat }: Pick<ClusterHead, 'heartbeat'>,
  { lastSeenAt, silence }: ClusterContext,
): number | undefined => lastSeenAt ?? (heartbeat && silence.lastSeen)

/** Conditions of a cluster: from its host, and whether that answers. */
const conditionsOf = (
  { conditions }: Pick<ClusterHead, 'conditions'>,
  context: ClusterContext,
): ClusterCondition[] => [...conditions.filter(({ type }) => type !== hostSilent), silenceCondition(context)]

/** A cluster in the API. */
export function toCluster(
  cluster: ClusterHead & Partial<ReportedCluster>,
  context: ClusterContext,
): SpectroCluster {
  const { uid, name, heartbeat, packs, steps } = cluster
  const lastSeen = lastSeenOf(cluster, context)
  return {
    apiVersion: 'v1',
    kind: 'SpectroCluster',
    metadata: {
      annotations: cluster.annotations,
      labels: cluster.labels,
      name,
      uid,
      creationTimestamp: formatTime(cluster.createdAt),
      lastModifiedTimestamp: formatTime(cluster.modifiedAt),
    },
    spec: {
      cloudConfigRef: { kind: 'edge-native', name, uid },
      cloudType: 'edge-native',
      clusterProfileTemplates: [...cluster.templates],
      clusterType: 'PureManage',
      edgeHost: { name: context.hostName, uid: cluster.hostUid },
      number: cluster.number,
    },
    status: {
      conditions: conditionsOf(cluster, context),
      isDeletionRequested: cluster.deleteRequestedAt !== undefined,
      state: cluster.state,
      ...(heartbeat && {
        agentVersion: heartbeat.agentVersion,
        ...(heartbeat.message === undefined ? {} : { message: heartbeat.message }),
        ...(heartbeat.number === undefined ? {} : { number: heartbeat.number }),
        ...(heartbeat.revision === undefined ? {} : { revision: heartbeat.revision }),
      }),
      ...(lastSeen === undefined ? {} : { lastHeartbeatTimestamp: formatTime(lastSeen) }),
      ...(packs ? { packs: [...packs] } : {}),
      ...(steps ? { steps: [...steps] } : {}),
    },
  }
}

/** The desired state of a cluster, as the audit trail compares it. Pure. @param given sensitive values are marked */
export function comparedCluster(
  cluster: ClusterRecord,
  hostName: string,
  given: readonly (GivenVariable & Pick<Given[number], 'wasSensitive'>)[],
): Compared {
  const { name, labels, annotations, templates, configuration, number } = cluster
  const { clusterConfig, machinePoolConfig } = configuration.spec.cloudConfig.spec
  return {
    name,
    host: hostName,
    labels,
    annotations,
    number,
    ...clusterConfig,
    pools: machinePoolConfig,
    isDeletionRequested: cluster.deleteRequestedAt !== undefined,
    profiles: templates.map(({ uid, name: profile, profileVersion: version, packs }) => ({
      uid,
      name: profile,
      version,
      packs: packs.map((pack) => ({ name: pack.name, version: pack.version ?? pack.tag })),
    })),
    variables: templates.map(({ uid, name: profile }) => ({
      name: profile,
      values: given
        .filter(({ profileUid }) => profileUid === uid)
        .map(({ name: variable, value, wasSensitive }) => ({
          name: variable,
          value: wasSensitive ? hidden(value) : value,
        })),
    })),
  }
}

/** A profile of a cluster, as it is now. */
export const toTemplate = (
  profile: ProfileRecord,
  packs: readonly (PackRecord | undefined)[],
): ClusterTemplate => ({
  cloudType: profile.cloudType,
  name: profile.name,
  profileVersion: profile.version,
  type: profile.type,
  uid: profile.uid,
  packs: profile.packs.map(({ name, tag, layer, type, version }, index) => ({
    name,
    tag,
    layer: layer || 'addon',
    type: type || 'spectro',
    version: packs[index]?.version ?? (version || tag),
    packUid: packs[index]?.uid ?? '',
  })),
})

/** The profiles of a cluster in the API. */
export const toProfileList = ({ templates, modifiedAt }: ClusterHead): ClusterProfileList => ({
  profiles: templates.map(({ uid, name, cloudType, type, profileVersion, packs }) => ({
    metadata: { name, uid, lastModifiedTimestamp: formatTime(modifiedAt) },
    spec: {
      cloudType,
      type,
      profileVersion,
      packs: packs.map((pack) => ({
        metadata: { name: pack.name, uid: pack.packUid ?? '' },
        spec: { layer: pack.layer, name: pack.name, type: pack.type, version: pack.version ?? pack.tag },
      })),
    },
  })),
})

/** The name of the only pool of a cluster. Pure. */
export function poolNameOf({ configuration }: Pick<ClusterRecord, 'configuration'>): string {
  const [{ name = '' }] = configuration.spec.cloudConfig.spec.machinePoolConfig
  return name || usualPoolName
}

/** The cloud configuration of a cluster in the API; it has the uid of the cluster. Pure. @param host undefined where it is not known any more */
export function toCloudConfig(cluster: ClusterRecord, host: HostRecord | undefined): EdgeNativeCloudConfig {
  const { uid, name, labels, annotations, conditions, configuration, hostUid } = cluster
  const { clusterConfig, machinePoolConfig } = configuration.spec.cloudConfig.spec
  const [{ hosts, ...pool }] = machinePoolConfig
  const [{ hostName, nicName }] = hosts
  return {
    metadata: {
      annotations: { ...annotations },
      labels: { ...labels },
      name,
      uid,
      creationTimestamp: formatTime(cluster.createdAt),
      lastModifiedTimestamp: formatTime(cluster.modifiedAt),
    },
    spec: {
      clusterConfig,
      machinePoolConfig: [
        {
          ...pool,
          name: poolNameOf(cluster),
          hosts: [
            {
              hostAddress: host?.reported.hostAddress ?? '',
              hostUid,
              ...(hostName === undefined ? {} : { hostName }),
              ...(nicName === undefined ? {} : { nicName }),
            },
          ],
        },
      ],
    },
    status: { conditions: [...conditions] },
  }
}
