import { Type, type Static, type TProperties } from 'typebox'
import { flag, ignored, maybe, optionsOf, refused, type FieldStance } from '../base/field-stance.ts'
import { Nic as HostNic } from '../host/schemas.ts'

// Wire names as the published API spells them. phase, problems, steps and some others are additions of ours.

const text = (description: string) => Type.String({ description })
const integer = (about: string | FieldStance) => Type.Optional(Type.Integer(optionsOf(about)))
const time = (description: string) => Type.Optional(Type.String({ format: 'date-time', description }))
const group = <Properties extends TProperties>(properties: Properties) =>
  Type.Optional(Type.Object(properties))
const words = (about: string | FieldStance) =>
  Type.Optional(Type.Record(Type.String(), Type.String(), optionsOf(about)))

export const MetaData = Type.Object({
  name: maybe('Name of the cluster: lower-case letters, digits and hyphens, at most 63.'),
  id: maybe('Uid of the cluster; given by the host.'),
  labels: words('For people and programs; not labels of nodes.'),
  tags: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), { description: 'For people and programs.' }),
  ),
  creationTimestamp: time('Time of the creation; given by the host.'),
  lastModifiedTimestamp: time('Time of the last change of the desired state; given by the host.'),
})

const asTheHostHasIt = 'As the interface has it, or empty: a cluster does not change the network of its host.'

const Nic = Type.Object({
  nicName: maybe('Name of the interface; empty: the one of the default route.'),
  ip: maybe(asTheHostHasIt),
  subnet: maybe(asTheHostHasIt),
  gateway: maybe(asTheHostHasIt),
  macAddr: maybe(asTheHostHasIt),
  isDefault: flag('Has to be false or absent where the interface has not the default route.'),
  dns: Type.Optional(Type.Array(Type.String(), { description: asTheHostHasIt })),
})

const EdgeHost = Type.Object(
  {
    hostUid: maybe('Id of this host, or empty.'),
    hostID: maybe('The same as hostUid.'),
    hostName: maybe('Name of the node in Kubernetes; empty: the host name.'),
    hostAddress: maybe('Address of this host for Kubernetes; empty: the one of the interface.'),
    networkInfo: Type.Optional(
      Type.Array(Nic, { description: 'The first names the interface for Kubernetes.' }),
    ),
    nic: Type.Optional(Nic),
    nicName: maybe('Like networkInfo[0].nicName.'),
    nodeInfo: Type.Optional(Type.Unknown(ignored('what a reply says of the node'))),
    staticIP: maybe('Like networkInfo[0].ip.'),
    caCert: maybe(refused('authorities are given to the host itself')),
    IsCandidateCaption: flag(refused('needs linked hosts')),
    twoNodeCandidatePriority: maybe('Needs linked hosts.'),
    tags: Type.Optional(Type.Unknown({ description: 'For people and programs.' })),
  },
  { title: 'EdgeHost' },
)

const Taint = Type.Object({
  key: maybe('Name of the taint.'),
  value: maybe('May be empty.'),
  effect: Type.Optional(Type.Enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute', ''])),
  timeAdded: maybe(ignored('Kubernetes sets it')),
})

/** Fields of a pool that both APIs have, and that have one meaning at most for the one host of a pool. */
export const poolOfOneHost = {
  labels: Type.Optional(Type.Array(Type.String(), ignored('marks of the role, which isControlPlane names'))),
  size: integer('1 or absent; 0 means absent.'),
  minSize: integer(refused('the pool has one host', 1)),
  maxSize: integer(refused('the pool has one host', 1)),
  updateStrategy: group({
    type: maybe(
      refused('the one host is updated in its place', ...['RollingUpdateScaleOut', 'RollingUpdateScaleIn']),
    ),
    maxSurge: maybe(refused('the one host is updated in its place')),
    maxUnavailable: maybe(refused('the one host is updated in its place')),
  }),
  nodeRepaveInterval: integer(refused('a node is not made anew')),
  skipK8sUpgrade: maybe(
    refused(
      'the one pool is the control plane; take a definition with the Kubernetes that shall stay',
      'disabled',
    ),
  ),
}

export const EdgeMachinePoolConfig = Type.Object(
  {
    name: maybe('Name of the pool, as a value of a Kubernetes label; empty: control-plane-pool.'),
    hosts: Type.Array(EdgeHost, { description: 'One entry, this host; empty means this host too.' }),
    isControlPlane: flag('The only pool is the control plane, whatever is given.'),
    useControlPlaneAsWorker: flag(
      'Whether workloads run on the control plane; the only pool needs true or nothing.',
    ),
    ...poolOfOneHost,
    additionalLabels: words('Labels of the nodes.'),
    additionalTags: words('For people and programs.'),
    taints: Type.Optional(Type.Array(Taint, { description: 'Taints of the nodes.' })),
    machinePoolProperties: group({ archType: maybe('amd64 or arm64, as this host is, or empty.') }),
    osType: maybe(refused('hosts run Linux', 'linux', 'Linux')),
  },
  { title: 'EdgeMachinePoolConfig' },
)
export type EdgeMachinePoolConfig = Static<typeof EdgeMachinePoolConfig>

const ownMetadata = ignored('the metadata of the cluster counts')
const ObjectMeta = Type.Object({
  name: maybe(ownMetadata),
  namespace: maybe(ownMetadata),
  uid: maybe(ownMetadata),
  labels: words(ownMetadata),
  annotations: words(ownMetadata),
  creationTimestamp: maybe(ownMetadata),
  deletionTimestamp: maybe(ownMetadata),
  lastModifiedTimestamp: maybe(ownMetadata),
  resourceVersion: maybe(ownMetadata),
  selfLink: maybe(ownMetadata),
})

export const ProfileVariables = Type.Array(
  Type.Object({
    name: maybe('Name of the variable.'),
    profileUid: maybe('Needed if more than one profile declares the name.'),
    value: maybe(
      'Text, whatever the format is. GET gives ******** for a sensitive variable; in a change of the cluster that keeps the stored value, to create one it is refused.',
    ),
  }),
  { maxItems: 4_096 },
)

/** Body of requests to create a cluster or to change it, and of the reply of GET. Empty text, lists and objects mean: not set. */
export const ClusterConfiguration = Type.Object(
  {
    metadata: Type.Optional(MetaData),
    spec: Type.Optional(
      Type.Object({
        archiveUploadPath: maybe(
          'The definition: archiveUploadPath of GET /v1/edge-mgmt/clusters/archive/{embedded,overridden}/details or of its upload.',
        ),
        profileVariables: Type.Optional(ProfileVariables),
        scheduleAt: maybe(
          'Start time of a change: RFC 3339, in the future; empty: at once. A creation has none. GET gives it while the change waits.',
        ),
        cloudConfig: Type.Optional(
          Type.Object({
            metadata: Type.Optional(ObjectMeta),
            spec: Type.Optional(
              Type.Object({
                clusterConfig: group({
                  controlPlaneEndpoint: group({
                    host: maybe(
                      'Virtual address (VIP) of the control plane: empty, an address of this host, or a free one of its subnet, which this host then holds.',
                    ),
                    type: maybe('VIP or empty.'),
                    ddnsSearchDomain: maybe('Has to be empty.'),
                  }),
                  isTwoNodeCluster: flag('Needs linked hosts.'),
                  overlayNetworkConfiguration: group({
                    enable: flag('Needs linked hosts.'),
                    cidr: maybe('Needs linked hosts.'),
                  }),
                  ntpServers: Type.Optional(
                    Type.Array(Type.String(), {
                      description: 'Names or addresses of servers from which the host takes its time.',
                    }),
                  ),
                  sshKeys: Type.Optional(
                    Type.Array(Type.String(), {
                      description: 'Public keys of OpenSSH, without options, for logins at the host.',
                    }),
                  ),
                  staticIp: flag(ignored('the addresses of the host are used as they are, static or not')),
                }),
                machinePoolConfig: Type.Optional(
                  Type.Array(EdgeMachinePoolConfig, { description: 'One pool, the control plane.' }),
                ),
              }),
            ),
          }),
        ),
      }),
    ),
  },
  { title: 'ClusterConfiguration' },
)
export type ClusterConfiguration = Static<typeof ClusterConfiguration>

export const PreflightProblem = Type.Object(
  {
    code: text('Stable, see docs/preflight-checks.md.'),
    severity: Type.Enum(['error', 'warning']),
    message: text('The problem, and what to do.'),
    pack: maybe('Its pack: profile uid and name.'),
    path: maybe('Its place in the posted configuration.'),
  },
  { title: 'PreflightProblem' },
)

export const PlannedStep = Type.Object(
  {
    key: text('Names the same work in every plan.'),
    title: text('For people.'),
    pack: maybe('Its pack.'),
    timeoutSeconds: Type.Number({ description: 'After this it has failed, and is tried again.' }),
  },
  { title: 'PlannedStep' },
)

export const ClusterCreated = Type.Object(
  {
    uid: text('Of the cluster.'),
    problems: Type.Optional(
      Type.Array(PreflightProblem, {
        description: 'Warnings of the pre-flight checks; absent where a request is repeated.',
      }),
    ),
  },
  { title: 'ClusterCreated' },
)
export type ClusterCreated = Static<typeof ClusterCreated>

export const ContentNeed = Type.Object(
  {
    kind: Type.Enum(['image', 'chart', 'program']),
    name: text('An image as it is pulled; the name of a chart or program.'),
    version: maybe('Of a chart, or of a program that has to be of one version.'),
    origin: text('Kubernetes, or the packs that need it, with commas between.'),
    isRequired: Type.Boolean({ description: 'Whether a cluster is refused without it.' }),
    reason: maybe('Why it is in the list, where nothing needs it by itself.'),
    sizeBytes: Type.Optional(Type.Number({ description: 'Where it was found.' })),
    isThere: Type.Optional(Type.Boolean({ description: 'Whether it was found, whole.' })),
  },
  { title: 'ContentNeed' },
)
export type ContentNeed = Static<typeof ContentNeed>

export const ClusterDryRun = Type.Object(
  {
    isPossible: Type.Boolean({ description: 'Whether no problem is an error.' }),
    problems: Type.Array(PreflightProblem, { description: 'Errors before warnings.' }),
    plan: Type.Array(PlannedStep, {
      description: 'Planned steps, in this order; empty where an error leaves no plan.',
    }),
    needs: Type.Array(ContentNeed, {
      description:
        'The content that the cluster needs, and whether this host has it; empty where the Kubernetes pack is not one that this host can install.',
    }),
  },
  { title: 'ClusterDryRun' },
)
export type ClusterDryRun = Static<typeof ClusterDryRun>

export const Condition = Type.Object(
  {
    type: Type.String(),
    status: text('True, False or Unknown.'),
    reason: maybe('Stable name.'),
    message: maybe('For people.'),
    lastTransitionTime: time('Time of the last change of status.'),
    lastProbeTime: time('Time of the last observation.'),
  },
  { title: 'Condition' },
)

const Health = Type.Object({
  status: Type.Enum(['Healthy', 'Unhealthy']),
  reason: Type.Optional(Type.String({ description: 'The problem; absent while healthy.' })),
})

export const clusterStates = ['Provisioning', 'Running', 'Deleting', 'Error'] as const
export const clusterPhases = [
  ...['Pending', 'Provisioning', 'Provisioned', 'Running', 'Failed', 'Unknown', 'Deleting'],
] as const
const State = Type.Enum([...clusterStates])

const Pool = Type.Object({
  name: Type.String(),
  isControlPlane: Type.Boolean(),
  archType: maybe('amd64 or arm64.'),
})

const ClusterStep = Type.Object(
  {
    key: text('Names the same work in every plan.'),
    title: text('For people.'),
    pack: maybe('The pack that it belongs to.'),
    state: Type.Enum(['running', 'done', 'failed']),
    failures: Type.Integer({ minimum: 0, description: 'Failed tries since it was last done.' }),
    reason: maybe('Failure of the last try.'),
    startTimestamp: time('Of the last try.'),
    endTimestamp: time('Of the last try; absent while it runs.'),
    nextTryTimestamp: time('Time of the next try of a failed step.'),
  },
  { title: 'ClusterStep' },
)

/** Why pods do not run, one word each; the meaning is for the documents. */
export const troubleReasons = {
  Crashing: 'a container ends again and again, or has ended and will not start again',
  ImagePull: 'the image of a container cannot be pulled',
  CreateContainer:
    'a container cannot be made or started, as where its program, or a key of a Secret or ConfigMap, is missing',
  ProbeFailing: 'a readiness, liveness or startup probe fails',
  ClaimPending: 'a PersistentVolumeClaim of the pod is not bound to a volume, or is missing',
  VolumeMount: 'a volume cannot be mounted, as where its Secret or ConfigMap is missing',
  Sandbox: 'the container runtime or the network plugin cannot make the sandbox of the pod',
  Taint: 'the node has a taint that the pod does not tolerate',
  NoRoom: 'the node has too little of what the pod requests, as CPU, memory or ports',
  Unschedulable: 'no node takes the pod for another reason, as a node selector',
  Evicted: 'the pod was ended for its node, as where that has too little memory or disk',
  PodsNotMade: 'the API server refuses the pods of a workload, as for a quota or an admission webhook',
  NotReady: 'the pod is not ready, and Kubernetes warns of something else',
} as const
export type TroubleReason = keyof typeof troubleReasons

export const ClusterTrouble = Type.Object(
  {
    pack: text(
      'The pack of the pod: its name, and after a slash its displayName where it has one; empty for CoreDNS and kube-proxy.',
    ),
    reason: Type.Enum(Object.keys(troubleReasons) as TroubleReason[], {
      description: `${Object.entries(troubleReasons)
        .map(([reason, meaning]) => `${reason}: ${meaning}.`)
        .join(' ')}`,
    }),
    message: text('The problem, one line, with the words of Kubernetes; sensitive values are masked.'),
    namespace: text('Of the pod.'),
    pod: text('Name of the pod; of its workload where the API server refuses the pod.'),
    container: maybe('Container in trouble; absent where it is the whole pod.'),
    sinceTimestamp: time('Since when, as far as Kubernetes says it.'),
  },
  { title: 'ClusterTrouble' },
)
export type ClusterTrouble = Static<typeof ClusterTrouble>

export const ClusterDeadline = Type.Object(
  {
    timestamp: Type.String({
      format: 'date-time',
      description: 'Estimated time of the action: the present time of the host and leftSeconds.',
    }),
    leftSeconds: Type.Integer({
      minimum: 0,
      description:
        'Time that is left, stored by the host: neither a restart nor a change of its clock starts it anew.',
    }),
    action: Type.Enum(['takenBack', 'stuck'], {
      description:
        'takenBack: the last good revision is applied again. stuck: the revision is a way back itself; it is still tried, and the cluster waits for an operator.',
    }),
  },
  {
    title: 'ClusterDeadline',
    description:
      'Time limit of the revision that is being applied; absent for the first one, which is tried until it runs, and for one that runs.',
  },
)
export type ClusterDeadline = Static<typeof ClusterDeadline>

/** Last lines of a container, for administrators. */
export const PodLogs = Type.Object(
  {
    namespace: text('Of the pod.'),
    pod: text('Its name.'),
    container: text('The read container.'),
    isPrevious: Type.Boolean({
      description: 'Whether the lines are of the instance of the container before its last start.',
    }),
    lines: Type.Array(Type.String(), {
      description:
        'The last lines, at most 20 and 4 kB, the oldest first. Sensitive values, and what looks like a secret, are masked.',
    }),
  },
  {
    title: 'PodLogs',
    description: 'Read from Kubernetes for this reply; stored nowhere, and not sent to a platform.',
  },
)
export type PodLogs = Static<typeof PodLogs>

export const ClusterDetails = Type.Object(
  {
    metadata: MetaData,
    spec: Type.Object({
      hostIDs: Type.Array(Type.String()),
      nodePools: Type.Array(
        Type.Object({
          pool: Pool,
          hosts: Type.Array(
            Type.Object({
              hostUid: text('Id of this host.'),
              hostID: text('The same as hostUid.'),
              hostName: text('Name of the node in Kubernetes.'),
              hostAddress: text('Of this host for Kubernetes.'),
              nic: Type.Array(HostNic, { description: 'The interfaces of this host.' }),
            }),
          ),
        }),
      ),
      ntpServers: Type.Array(Type.String()),
      sshKeys: Type.Array(Type.String()),
      overlayCIDR: text('Empty: there is no overlay.'),
      vip: text('Virtual address of the control plane; empty if there is none.'),
      scheduleAt: time('Start time of the waiting change; absent where none waits for its time.'),
    }),
    status: Type.Object({
      agentVersion: text('Version of edgehostd.'),
      revision: Type.Integer({
        minimum: 1,
        description: 'The applied revision; GET /v1/edge-mgmt/cluster/revisions has all.',
      }),
      clusterState: State,
      phase: Type.Enum([...clusterPhases], { description: 'Says more than clusterState.' }),
      clusterStateReason: text(
        'Current work or wait, or the cause of the failure; empty while there is none.',
      ),
      clusterConditions: Type.Array(Condition),
      health: Health,
      isRebootPending: Type.Boolean(),
      k8sVersion: text('Version that runs, for example 1.34.4; before it runs, that of the definition.'),
      k8sTargetVersion: maybe('Version to which it is being changed; absent where that runs.'),
      pendingRevision: Type.Optional(
        Type.Object(
          {
            revision: Type.Integer({ minimum: 1 }),
            outcome: Type.Enum(['waiting', 'held']),
            reason: maybe('Why it is held.'),
            scheduleAt: time('Its start time; absent: at once.'),
          },
          { description: 'The accepted revision that waits, or is held since values are missing.' },
        ),
      ),
      kubeconfig: maybe(
        'Of the administrator of Kubernetes; for administrators of the host, once there is one. The first delivery in a session is in the audit trail.',
      ),
      nodePools: Type.Array(
        Type.Object({
          pool: Pool,
          nodes: Type.Array(
            Type.Object({
              nodeName: Type.String(),
              nodeState: State,
              ipv4: maybe('Its address.'),
              architecture: maybe('For example amd64.'),
              k8sVersion: maybe('Of its kubelet.'),
              age: maybe('For example 3d4h.'),
              health: Health,
            }),
          ),
        }),
      ),
      services: Type.Array(
        Type.Object({
          name: text('Namespace and name.'),
          host: text('Address under which it is reached.'),
          ports: Type.Array(
            Type.Object({
              name: maybe('Of the port.'),
              port: Type.Optional(Type.Integer()),
              nodePort: Type.Optional(Type.Integer()),
              protocol: maybe('TCP, UDP or SCTP.'),
              targetPort: maybe('Number or name.'),
              appProtocol: maybe('For example http.'),
            }),
          ),
        }),
      ),
      ntpServersApplied: Type.Boolean({
        description:
          'Whether the host takes its time from spec.ntpServers; with none, whether it has its own servers only. The condition NtpServersApplied says why not.',
      }),
      sshKeysApplied: Type.Boolean({
        description:
          'Whether spec.sshKeys, and no others of the cluster, are in its keys file of the account cluster.sshAccount. The condition SshKeysApplied says why not.',
      }),
      steps: Type.Array(ClusterStep, { description: 'In the order of their first starts.' }),
      troubles: Type.Array(ClusterTrouble, {
        description:
          'Pods of the packs, and of CoreDNS and kube-proxy, that do not run, and why; empty where all run, and while the API server does not answer.',
      }),
      deadline: Type.Optional(ClusterDeadline),
    }),
  },
  { title: 'Cluster' },
)
export type ClusterDetails = Static<typeof ClusterDetails>

const NodeCondition = Type.Object({
  conditionType: Type.String(),
  status: text('True, False or Unknown.'),
  reason: Type.String(),
  message: Type.String(),
})

export const ClusterNodes = Type.Object(
  {
    nodes: Type.Array(
      Type.Object({
        nodeName: Type.String(),
        edgeHostID: maybe('Absent for a node that is not this host.'),
        ipv4: maybe('Its address.'),
        architecture: maybe('For example amd64.'),
        operatingSystem: maybe('For example linux.'),
        osImage: maybe('For example Debian GNU/Linux 12 (bookworm).'),
        kernelVersion: maybe('Of the running kernel.'),
        kubeletVersion: maybe('For example v1.34.4.'),
        age: maybe('For example 3d4h.'),
        nodeStatus: NodeCondition,
        nodeHealth: Type.Array(NodeCondition, { description: 'All conditions of the node.' }),
      }),
    ),
  },
  { title: 'ClusterNodes' },
)
export type ClusterNodes = Static<typeof ClusterNodes>

export const MachinePools = Type.Object(
  { items: Type.Array(EdgeMachinePoolConfig) },
  { title: 'MachinePools' },
)
export type MachinePools = Static<typeof MachinePools>

const issueDate = text(
  'Start of its validity, RFC 3339. A renewal may keep it; only expirationDate says that there was one.',
)
const expirationDate = text('End of its validity, RFC 3339.')

const ChildCerts = Type.Object(
  {
    name: text(
      'As kubeadm names it, for example apiserver or admin.conf; kubelet-client and kubelet-server.',
    ),
    nodeName: text('Node that has it.'),
    issueDate,
    expirationDate,
  },
  { title: 'ChildCerts' },
)
type ChildCerts = Static<typeof ChildCerts>

const CA = Type.Object(
  {
    name: text(
      'As kubeadm names it: ca, etcd-ca, front-proxy-ca; kubelet-server-ca is of the kubelet itself.',
    ),
    issueDate,
    expirationDate,
    childCerts: Type.Array(ChildCerts, { description: 'The certificates that it has signed.' }),
  },
  { title: 'CA' },
)
type CA = Static<typeof CA>

const CertificateRenewal = Type.Object(
  {
    uid: text('Of the action, as its POST gave it.'),
    by: text('Its requester.'),
    creationTimestamp: text('Time of the request, RFC 3339.'),
    endTimestamp: Type.Optional(text('Time of its end, RFC 3339; absent while it is under way.')),
    reason: Type.Optional(text('Failure of its last try; absent where none failed.')),
  },
  { title: 'CertificateRenewal' },
)
type CertificateRenewal = Static<typeof CertificateRenewal>

export const CertificateDetails = Type.Object(
  {
    needsRenewal: Type.Boolean({
      description:
        'Whether a certificate has to be renewed now: 30 days before its end, or when a third of a shorter life is left. edgehostd renews it by itself.',
    }),
    earliestAutoRenewalTime: Type.Optional(
      text('Time of the next renewal by edgehostd itself, RFC 3339; absent where it can renew none.'),
    ),
    certificates: Type.Array(CA, {
      description: 'The authorities with their certificates; empty until the control plane is set up.',
    }),
    problems: Type.Array(Type.String(), {
      description: 'Certificates that end soon and are not renewed by themselves, and unreadable files.',
    }),
    renewal: Type.Optional(CertificateRenewal),
  },
  { title: 'CertificateDetails' },
)
export type CertificateDetails = Static<typeof CertificateDetails>

export const RenewalAccepted = Type.Object(
  { uid: text('Of the action; the same while one is under way.'), message: text('The present work.') },
  { title: 'RenewalAccepted' },
)
export type RenewalAccepted = Static<typeof RenewalAccepted>
