import { Type, type Static, type TProperties } from 'typebox'
import { flag, ignored, maybe, refused, type FieldStance } from '../../base/field-stance.ts'
import { poolOfOneHost } from '../../cluster/schemas.ts'
import { variableFields } from '../../definition/definition.ts'
import { AnnotationsEntity, LabelsEntity, ObjectMeta, timesOfReply } from '../schemas.ts'
import { PackLayer, PackType, ProfileType } from '../packs/schemas.ts'

// Wire types of reports of hosts about clusters, as the published API spells them. number, steps and some others are additions of ours.

const given = (maxLength = 256) => Type.Optional(Type.String({ maxLength }))
const group = <Properties extends TProperties>(properties: Properties) =>
  Type.Optional(Type.Object(properties))
const longText = Type.String({ maxLength: 4_096 })
const time = Type.Optional(Type.String({ maxLength: 64, format: 'date-time' }))

const whole = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description }))

// The number of the next change follows a reported one, and has to stay far below the largest exact number of JSON.
const numberOf = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: 999_999_999_999, description }))

/** A condition of a cluster, as its host reports it. */
export const ClusterCondition = Type.Object(
  {
    lastProbeTime: time,
    lastTransitionTime: time,
    message: Type.Optional(longText),
    observedGeneration: numberOf(
      'Of the condition Wanted: the number of the desired state that it is about.',
    ),
    reason: given(),
    status: Type.String({ maxLength: 64 }),
    type: Type.String({ minLength: 1, maxLength: 256 }),
  },
  { title: 'ClusterCondition' },
)
export type ClusterCondition = Static<typeof ClusterCondition>
export const ClusterConditions = Type.Array(ClusterCondition, { maxItems: 64 })

export const ClusterStep = Type.Object(
  {
    key: Type.String({ maxLength: 512 }),
    title: Type.String({ maxLength: 512 }),
    pack: given(512),
    state: Type.Enum(['running', 'done', 'failed']),
    failures: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
    reason: Type.Optional(longText),
    startTimestamp: time,
    endTimestamp: time,
    nextTryTimestamp: time,
  },
  { title: 'ClusterStep' },
)
export type ClusterStep = Static<typeof ClusterStep>

/** The heartbeat of a cluster, each minute. */
export const ClusterHeartbeat = Type.Object(
  {
    agentVersion: Type.String({ maxLength: 64 }),
    message: Type.Optional(longText),
    number: numberOf('The newest number of the desired state that the host has accepted.'),
    seenNumber: numberOf('The newest number that the host has dealt with, also by a refusal.'),
    revision: whole('The revision that the host is made as.'),
    state: Type.Optional(
      Type.Enum(['Pending', 'Provisioning', 'Running', 'Deleting', 'Error', 'Deleted'], {
        description: 'Deleted: the host has the cluster no more.',
      }),
    ),
    steps: Type.Optional(Type.Array(ClusterStep, { maxItems: 1_000 })),
  },
  { title: 'SpectroClusterHeartbeat' },
)
export type ClusterHeartbeat = Static<typeof ClusterHeartbeat>

/** Rollout state of the packs of a cluster. */
export const PacksStatus = Type.Object(
  {
    packs: Type.Optional(
      Type.Array(
        Type.Object(
          {
            condition: group({
              message: Type.Optional(longText),
              reason: given(),
              status: given(64),
              type: given(64),
            }),
            endTime: time,
            name: given(512),
            profileUid: given(128),
            startTime: time,
            type: given(64),
            version: given(),
          },
          { title: 'SpectroClusterPackStatusEntity' },
        ),
        { maxItems: 1_000 },
      ),
    ),
  },
  { title: 'SpectroClusterPacksStatusEntity' },
)
export type PacksStatus = Static<typeof PacksStatus>
export type PackStatus = NonNullable<PacksStatus['packs']>[number]
export const KubeconfigEntity = Type.Object(
  { kubeconfig: Type.String({ minLength: 1, maxLength: 262_144 }) },
  { title: 'SpectroClusterAssetKubeConfig' },
)

// Wire types of clusters on hosts, as the published API spells them. number, problems, steps and some others are additions of ours.

const text = (description: string) => Type.String({ description })
const texts = (description: string, maxItems = 256) =>
  Type.Optional(Type.Array(Type.String({ maxLength: 8_192 }), { description, maxItems }))

const nicName = maybe('Name of the interface for Kubernetes; empty: the one of the default route.')

const asReported = 'As the host reports it, or empty: a cluster does not change the network of its host.'

/** The network of a cluster and the settings of its host. */
export const EdgeNativeClusterConfig = Type.Object(
  {
    controlPlaneEndpoint: group({
      ddnsSearchDomain: maybe('Has to be empty.'),
      host: maybe('Virtual address of the control plane; empty: the address of the host.'),
      type: maybe('VIP or empty.'),
    }),
    isTwoNodeCluster: flag('A cluster has one host: false or absent.'),
    ntpServers: texts('Names or addresses of servers from which the host takes its time.'),
    overlayNetworkConfiguration: group({
      cidr: maybe('Has to be empty.'),
      enable: flag('A cluster has one host: false or absent.'),
    }),
    sshKeys: texts('Public keys of OpenSSH, without options, for logins at the host.'),
    staticIp: flag(ignored('the addresses of the host are used as they are, static or not')),
  },
  { title: 'EdgeNativeClusterConfig' },
)
export type EdgeNativeClusterConfig = Static<typeof EdgeNativeClusterConfig>

const anything = (about: FieldStance) => Type.Optional(Type.Unknown(about))

/** Further fields of `spec.clusterConfig` that clients are known to send. */
const foreignClusterConfig = [
  ['clusterRbac', 'objects of Kubernetes belong into a pack'],
  ['clusterResourceBindings', 'objects of Kubernetes belong into a pack'],
  ['hostClusterConfig', 'a cluster hosts no other ones'],
  ['machineHealthConfig', 'the host judges its own health'],
  ['machineManagementConfig', 'the operating system is not patched by the platform'],
  ['resources', 'objects of Kubernetes belong into a pack'],
] as const

const Taint = Type.Object({
  effect: Type.Optional(Type.Enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute', ''])),
  key: given(),
  timeAdded: maybe(ignored('Kubernetes sets it')),
  value: given(),
})

/** Fields of the pool of a cluster, but for its hosts. */
export const poolFields = {
  ...poolOfOneHost,
  additionalAnnotations: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      ...refused('a node gets labels, in additionalLabels, and no annotations'),
      maxProperties: 64,
    }),
  ),
  additionalLabels: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'Labels of the node.', maxProperties: 64 }),
  ),
  additionalTags: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'For people and programs.', maxProperties: 64 }),
  ),
  isControlPlane: flag('The only pool is the control plane: true or absent.'),
  machinePoolProperties: group({ archType: maybe('amd64 or arm64, as the host is, or empty.') }),
  name: maybe('Name of the pool; empty: control-plane-pool.'),
  overrideClusterAPIConfig: maybe(refused('no Cluster API makes the host')),
  overrideHealthCheckConfiguration: maybe(refused('hosts have health checks of their own')),
  overrideKubeadmConfiguration: maybe(
    refused('the values of the pack of Kubernetes, cluster.config, say how kubeadm makes the cluster'),
  ),
  taints: Type.Optional(Type.Array(Taint, { description: 'Taints of the node.', maxItems: 64 })),
  useControlPlaneAsWorker: flag('Workloads run on the only node: true or absent.'),
}

const ClusterVariable = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 256 }),
  value: Type.Optional(
    Type.String({
      description: 'Text, whatever the format is. A mask that is sent back keeps the stored value.',
    }),
  ),
})

const ProfileEntity = Type.Object(
  {
    uid: Type.Optional(Type.String({ maxLength: 64, description: 'Of the cluster profile.' })),
    packValues: Type.Optional(
      Type.Array(Type.Unknown(), { description: 'Has to be empty: the profile has the values.' }),
    ),
    replaceWithProfile: given(64),
    variables: Type.Optional(Type.Array(ClusterVariable, { maxItems: 1_000 })),
  },
  { title: 'SpectroClusterProfileEntity' },
)
export type ProfileEntity = Static<typeof ProfileEntity>

/** A cluster in the body of its creation. */
export const EdgeNativeClusterEntity = Type.Object(
  {
    metadata: Type.Object({
      annotations: Type.Optional(AnnotationsEntity),
      creationTimestamp: maybe('Set by the platform.'),
      labels: Type.Optional(LabelsEntity),
      name: Type.String({
        maxLength: 256,
        description: 'Lower-case letters, digits and hyphens, at most 63; once in its scope.',
      }),
      uid: maybe('Set by the platform.'),
      ...timesOfReply,
    }),
    spec: Type.Object({
      cloudConfig: Type.Optional(EdgeNativeClusterConfig),
      clusterConfig: group({
        clusterMetaAttribute: maybe(ignored('a note for user interfaces; annotations hold such')),
        controlPlaneHealthCheckTimeout: maybe(refused('the host judges the health of its control plane')),
        lifecycleConfig: anything(refused('a cluster is not paused')),
        location: anything(refused('the platform knows no places; labels may name one')),
        timezone: maybe(refused('the host has its own time zone')),
        updateWorkerPoolsInParallel: flag(ignored('there is one pool')),
        ...Object.fromEntries(foreignClusterConfig.map(([name, why]) => [name, anything(refused(why))])),
      }),
      clusterTemplate: anything(refused('name the cluster profiles in spec.profiles')),
      policies: anything(refused('backups and scans of clusters are not made by the platform')),
      machinepoolconfig: Type.Optional(
        Type.Array(
          Type.Object({
            cloudConfig: group({
              edgeHosts: Type.Array(
                Type.Object({
                  hostName: maybe('Name of the node in Kubernetes; empty: the host name.'),
                  hostUid: Type.String({
                    maxLength: 128,
                    description: 'The uid of the host, or the id that it gives itself.',
                  }),
                  nic: group({
                    nicName,
                    ip: maybe(asReported),
                    subnet: maybe(asReported),
                    gateway: maybe(asReported),
                    macAddr: maybe(asReported),
                    isDefault: flag(
                      'Has to be false or absent where the interface has not the default route.',
                    ),
                    dns: texts(asReported, 16),
                  }),
                  nicName,
                  staticIP: maybe('Like nic.ip.'),
                  twoNodeCandidatePriority: maybe('Has to be empty.'),
                }),
                { maxItems: 64 },
              ),
            }),
            poolConfig: group(poolFields),
          }),
          { description: 'One pool with one host.', maxItems: 64 },
        ),
      ),
      profiles: Type.Optional(Type.Array(ProfileEntity, { maxItems: 64 })),
    }),
  },
  { title: 'SpectroEdgeNativeClusterEntity' },
)
export type EdgeNativeClusterEntity = Static<typeof EdgeNativeClusterEntity>

/** The profiles of a cluster in a change. */
export const ClusterProfilesEntity = Type.Object(
  {
    profiles: Type.Array(ProfileEntity, { maxItems: 64 }),
    spcApplySettings: group({
      actionType: Type.Optional(
        Type.Enum(['DownloadAndInstall'], { description: 'A change is always made at once.' }),
      ),
    }),
  },
  { title: 'SpectroClusterProfiles' },
)
export type ClusterProfilesEntity = Static<typeof ClusterProfilesEntity>

export const ClusterVariablesUpdate = Type.Array(
  Type.Object(
    {
      profileUid: Type.String({ maxLength: 64 }),
      variables: Type.Optional(Type.Array(ClusterVariable, { maxItems: 1_000 })),
    },
    { title: 'SpectroClusterVariableUpdateEntity' },
  ),
  { maxItems: 64 },
)
export type ClusterVariablesUpdate = Static<typeof ClusterVariablesUpdate>

const Problem = Type.Object(
  {
    code: text('Stable, see docs/platform.md.'),
    severity: Type.Enum(['error', 'warning']),
    message: text('The problem and its remedy.'),
    path: maybe('The place in the request, or in the definition.'),
    profileUid: maybe('The profile that it concerns.'),
    pack: maybe('The pack that it concerns.'),
  },
  { title: 'ClusterProblem' },
)
export type ClusterProblem = Static<typeof Problem>

const Results = Type.Object(
  {
    results: Type.Array(
      Type.Object({
        displayName: Type.String(),
        errors: Type.Array(Type.Object({ code: Type.String(), message: Type.String() })),
        name: Type.String(),
      }),
    ),
  },
  { title: 'ConstraintValidatorResponse' },
)

export const ClusterValidatorResponse = Type.Object(
  {
    isPossible: Type.Boolean({ description: 'Whether no problem is an error.' }),
    machinePools: Results,
    problems: Type.Array(Problem, { description: 'All of them, at most 100, errors before warnings.' }),
    profiles: Type.Array(Type.Object({ packs: Results, uid: Type.String() })),
  },
  { title: 'SpectroClusterValidatorResponse' },
)
export type ClusterValidatorResponse = Static<typeof ClusterValidatorResponse>

const ClusterPack = Type.Object({
  annotations: Type.Optional(Type.Record(Type.String(), Type.String())),
  layer: PackLayer,
  manifests: Type.Optional(Type.Array(Type.Object({ kind: Type.String(), name: Type.String() }))),
  name: Type.String(),
  packUid: maybe('The pack of this platform of which the cluster was made.'),
  tag: Type.String(),
  type: PackType,
  values: maybe(
    'After variables and macros, sensitive values masked; only where resolvePackValues asks for it.',
  ),
  version: maybe('Of the pack.'),
})

/** A profile of a cluster, as it was when the cluster was changed last. */
export const ClusterTemplate = Type.Object(
  {
    cloudType: Type.String(),
    name: Type.String(),
    packs: Type.Array(ClusterPack),
    profileVersion: Type.String(),
    type: ProfileType,
    uid: Type.String(),
  },
  { title: 'ClusterProfileTemplate' },
)
export type ClusterTemplate = Static<typeof ClusterTemplate>

const clusterStates = [...['Pending', 'Provisioning', 'Running', 'Deleting', 'Error', 'Deleted']] as const
const State = Type.Enum([...clusterStates], {
  description:
    'Pending: the host has not reported yet. Otherwise its report, and Deleting once that was asked for.',
})

const LastHeartbeat = Type.Optional(
  Type.String({
    format: 'date-time',
    description: 'Time of the last report of the cluster: the age of the state here.',
  }),
)

/** A cluster in replies. */
export const SpectroCluster = Type.Object(
  {
    apiVersion: Type.Literal('v1'),
    kind: Type.Literal('SpectroCluster'),
    metadata: ObjectMeta,
    spec: Type.Object({
      cloudConfigRef: Type.Object({ kind: Type.String(), name: Type.String(), uid: Type.String() }),
      cloudType: Type.Literal('edge-native'),
      clusterProfileTemplates: Type.Array(ClusterTemplate),
      clusterType: Type.Literal('PureManage'),
      edgeHost: Type.Object(
        { name: Type.String(), uid: Type.String() },
        { description: 'The host of the cluster.' },
      ),
      number: Type.Integer({ description: 'Rises with each change of the desired state.' }),
    }),
    status: Type.Object({
      agentVersion: maybe('Version of edgehostd.'),
      conditions: Type.Array(ClusterCondition, {
        description:
          'As the host has them; Wanted has the outcome of the last change: its reason is Applied, or why it is not. HostSilent is of the platform: True where the host has not been seen for three minutes, so that all else here is as old as its last heartbeat; Unknown where it has not been seen since the platform was started or restored, for the first three minutes.',
      }),
      isDeletionRequested: Type.Boolean(),
      lastHeartbeatTimestamp: LastHeartbeat,
      message: maybe('Of the host.'),
      number: Type.Optional(
        Type.Integer({ description: 'The newest number that the host has accepted; see spec.number.' }),
      ),
      packs: PacksStatus.properties.packs,
      revision: Type.Optional(Type.Integer({ description: 'The revision that the host is made as.' })),
      state: State,
      steps: Type.Optional(Type.Array(ClusterStep, { description: 'Of one cluster only, not in lists.' })),
    }),
  },
  { title: 'SpectroCluster' },
)
export type SpectroCluster = Static<typeof SpectroCluster>

export const ClusterStatus = Type.Object(
  {
    status: Type.Object({
      conditions: Type.Array(ClusterCondition, { description: 'HostSilent alone.' }),
      lastHeartbeatTimestamp: LastHeartbeat,
      state: State,
    }),
  },
  { title: 'SpectroClusterStatusEntity' },
)
export type ClusterStatus = Static<typeof ClusterStatus>

const Time = Type.String({ format: 'date-time' })

export const ClusterProfileList = Type.Object(
  {
    profiles: Type.Array(
      Type.Object({
        metadata: Type.Object({ name: Type.String(), uid: Type.String(), lastModifiedTimestamp: Time }),
        spec: Type.Object({
          cloudType: Type.String(),
          packs: Type.Array(
            Type.Object({
              metadata: Type.Object({ name: Type.String(), uid: Type.String() }),
              spec: Type.Object({
                layer: PackLayer,
                name: Type.String(),
                type: PackType,
                version: Type.String(),
              }),
            }),
          ),
          profileVersion: text('Of the profile.'),
          type: ProfileType,
        }),
      }),
    ),
  },
  { title: 'SpectroClusterProfileList' },
)
export type ClusterProfileList = Static<typeof ClusterProfileList>

export const ClusterVariables = Type.Array(
  Type.Object(
    {
      profileUid: Type.String(),
      variables: Type.Array(
        Type.Object({
          name: Type.String(),
          ...variableFields,
          defaultValue: maybe('******** if the variable is sensitive.'),
          options: Type.Optional(
            Type.Array(
              Type.Object({
                value: Type.String(),
                label: Type.Optional(Type.String()),
                description: Type.Optional(Type.String()),
                default: Type.Optional(Type.Boolean()),
              }),
            ),
          ),
          value: text(
            'The value in the cluster: the given one, otherwise the default. ******** if it is sensitive.',
          ),
        }),
      ),
    },
    { title: 'SpectroClusterVariables' },
  ),
)
export type ClusterVariables = Static<typeof ClusterVariables>
