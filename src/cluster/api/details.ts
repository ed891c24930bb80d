import { outOfCluster, type HostInCluster } from '../../host/document.ts'
import { hasRun, isDeleting, type ClusterRecord } from '../cluster-store.ts'
import { createHideOf } from '../../definition/slots/secrets.ts'
import type { KubernetesClient, KubernetesObject, Resource } from '../../kubernetes/client.ts'
import { conditionsOf } from '../../kubernetes/fields.ts'
import { coreResource, nodeResource } from '../../kubernetes/paths.ts'
import { shortDuration } from '../../base/time.ts'
import type { Nic } from '../../host/schemas.ts'
import type { Clock } from '../../system/clock.ts'
import type { SettingsObserved } from '../loop/observed.ts'
import type { ClusterDetails, ClusterNodes, ClusterTrouble } from '../schemas.ts'
import type { ClusterStatus, Deadline } from '../loop/status.ts'
import type { StepRecord } from '../loop/step-store.ts'
import { scheduleOf } from '../desired/revision-document.ts'
import type { Revision } from '../desired/revisions.ts'

/** Role of this host in its cluster. @param isSetUp whether the control plane is set up */
export function hostInCluster(record: ClusterRecord | undefined, isSetUp: boolean): HostInCluster {
  if (!record) return outOfCluster
  return {
    configurationStatus: hasRun(record) && !isDeleting(record) ? 'configured' : 'inprogress',
    nodeRole: isSetUp || hasRun(record) ? 'controlplane' : 'init',
    isClusterPhase: true,
  }
}

interface DetailsOptions {
  readonly hostId: string
  readonly architecture: string
  /** The interfaces of this host. */
  readonly nics: () => readonly Nic[]
  readonly version: string
  readonly conditions: () => ClusterDetails['status']['clusterConditions']
  readonly steps: () => readonly StepRecord[]
  /** Last observed settings of the host; undefined before the first observation. */
  readonly settings: () => SettingsObserved | undefined
  /** Pods in trouble, as they were last observed; masked. */
  readonly troubles: () => readonly ClusterTrouble[]
  /** Time limit of the revision that is being applied; undefined where it has none. */
  readonly deadline: () => Deadline | undefined
  /** The revision that waits or is held; undefined for none. */
  readonly pending: () => Revision | undefined
  /** Version of Kubernetes that runs here; empty for none. */
  readonly runningVersion: () => string
  /** The client of the API server; undefined before there is one. */
  readonly client: () => Promise<KubernetesClient | undefined>
  readonly clock: Clock
}

/** What of the status is known without a question to the API server. */
export type ClusterState = Pick<
  ClusterDetails['status'],
  'clusterState' | 'phase' | 'clusterStateReason' | 'health' | 'clusterConditions' | 'troubles' | 'deadline'
>

/** The cluster, for the API, with its sensitive values masked: Kubernetes quotes them, and names may be made of them. */
export interface Details {
  /** @param status is asked last: while the API server is asked, which may take seconds, it may change */
  details(
    record: ClusterRecord,
    status: () => ClusterStatus,
    kubeconfig: string | undefined,
  ): Promise<ClusterDetails>
  nodes(record: ClusterRecord): Promise<ClusterNodes>
  state(record: Pick<ClusterRecord, 'sensitive'>, status: ClusterStatus): ClusterState
  steps(record: Pick<ClusterRecord, 'sensitive'>): ClusterDetails['status']['steps']
}

const serviceResource = coreResource('Service', 'services')
const longestMs = 5_000

export function createDetails(options: DetailsOptions): Details {
  const { hostId, architecture, version, conditions, steps, client, clock } = options

  /** Objects of the cluster; undefined while the API server does not answer. */
  async function list(resource: Resource): Promise<readonly KubernetesObject[] | undefined> {
    try {
      return await (await client())?.list(resource, { signal: AbortSignal.timeout(longestMs) })
    } catch {
      return undefined
    }
  }

  async function nodes({ summary: { node }, sensitive }: ClusterRecord): Promise<ClusterNodes['nodes']> {
    const found = await list(nodeResource)
    const hide = createHideOf(sensitive)
    const all = (found ?? []).map((each) => nodeOf(each, clock.now(), hide))
    const isHere = all.some(({ nodeName }) => nodeName === node.name)
    const absent = {
      conditionType: 'Ready',
      status: 'Unknown',
      ...(found
        ? { reason: 'NotRegistered', message: 'the node is not in the cluster yet' }
        : { reason: 'ApiSilent', message: 'the API server does not answer' }),
    }
    return [
      ...(isHere
        ? []
        : [
            {
              nodeName: node.name,
              ipv4: node.address,
              architecture,
              nodeStatus: absent,
              nodeHealth: [absent],
            },
          ]),
      ...all,
    ].map((each) => (each.nodeName === node.name ? { ...each, edgeHostID: hostId } : each))
  }

  function stateOf(hide: Hide, { state, phase, reason, health }: ClusterStatus): ClusterState {
    return {
      clusterState: state,
      phase,
      clusterStateReason: hide(reason),
      health: { ...health, ...(health.reason === undefined ? {} : { reason: hide(health.reason) }) },
      clusterConditions: conditions(),
      troubles: [...options.troubles()],
      ...deadlineOf(options.deadline(), clock.now()),
    }
  }

  return {
    state: ({ sensitive }, status) => stateOf(createHideOf(sensitive), status),
    steps({ sensitive }) {
      const hide = createHideOf(sensitive)
      return steps().map((each) => stepOf(each, hide))
    },
    nodes: async (record) => ({ nodes: await nodes(record) }),
    async details(record, status, kubeconfig) {
      const { uid, name, generation, posted, summary, sensitive, createdAt, modifiedAt } = record
      const pending = options.pending()
      const scheduleAt = pending ? scheduleOf(pending) : null
      const runningVersion = options.runningVersion()
      const hide = createHideOf(sensitive)
      const { node, kubernetes } = summary
      const { clusterConfig = {} } = posted.spec?.cloudConfig?.spec ?? {}
      const pool = { name: node.poolName, isControlPlane: true, archType: architecture }
      const host = {
        hostUid: hostId,
        hostID: hostId,
        hostName: node.name,
        hostAddress: node.address,
        nic: [...options.nics()],
      }
      const [found, services] = await Promise.all([nodes(record), list(serviceResource)])
      const stands = status()
      const settings = options.settings()
      return {
        metadata: {
          id: uid,
          name,
          labels: posted.metadata?.labels ?? {},
          tags: posted.metadata?.tags ?? {},
          creationTimestamp: timeOf(createdAt),
          lastModifiedTimestamp: timeOf(modifiedAt),
        },
        spec: {
          hostIDs: [hostId],
          nodePools: [{ pool, hosts: [host] }],
          ntpServers: clusterConfig.ntpServers ?? [],
          sshKeys: clusterConfig.sshKeys ?? [],
          overlayCIDR: '',
          vip: clusterConfig.controlPlaneEndpoint?.host ?? '',
          ...(scheduleAt === null ? {} : { scheduleAt: timeOf(scheduleAt) }),
        },
        status: {
          agentVersion: version,
          revision: generation,
          ...stateOf(hide, stands),
          isRebootPending: false,
          k8sVersion: runningVersion || kubernetes.version,
          ...(runningVersion === '' || runningVersion === kubernetes.version
            ? {}
            : { k8sTargetVersion: kubernetes.version }),
          ...(pending ? { pendingRevision: shownPending(pending) } : {}),
          ...(kubeconfig === undefined ? {} : { kubeconfig }),
          nodePools: [{ pool, nodes: found.map((each) => poolNodeOf(each, stands)) }],
          services: (services ?? []).flatMap((each) => serviceOf(each, node.address, hide)),
          ntpServersApplied: settings?.ntpServers.isApplied ?? false,
          sshKeysApplied: settings?.sshKeys.isApplied ?? false,
          steps: steps().map((each) => stepOf(each, hide)),
        },
      }
    },
  }
}

type Hide = (text: string) => string

const deadlineOf = (deadline: Deadline | undefined, now: number) =>
  deadline === undefined
    ? {}
    : {
        deadline: {
          timestamp: timeOf(now + deadline.leftMs),
          leftSeconds: Math.ceil(deadline.leftMs / 1_000),
          action: deadline.action,
        },
      }

function shownPending(revision: Revision): NonNullable<ClusterDetails['status']['pendingRevision']> {
  const { generation, outcome, reason, sensitive } = revision
  const scheduleAt = scheduleOf(revision)
  return {
    revision: generation,
    outcome: outcome === 'held' ? 'held' : 'waiting',
    ...(reason === '' ? {} : { reason: createHideOf(sensitive)(reason) }),
    ...(scheduleAt === null ? {} : { scheduleAt: timeOf(scheduleAt) }),
  }
}

const timeOf = (at: number) => new Date(at).toISOString()

type Node = ClusterNodes['nodes'][number]

interface NodeStatus {
  readonly addresses?: readonly { readonly type: string; readonly address: string }[]
  readonly nodeInfo?: Readonly<Record<string, string>>
}

function nodeOf(object: KubernetesObject, now: number, hide: Hide): Node {
  const { metadata, status } = object
  const { addresses = [], nodeInfo = {} } = (status ?? {}) as NodeStatus
  const nodeHealth = conditionsOf(object).map(({ type, ...rest }) => ({
    conditionType: type,
    ...rest,
    message: hide(rest.message),
  }))
  const ready = nodeHealth.find(({ conditionType }) => conditionType === 'Ready')
  const internal = addresses.find(({ type }) => type === 'InternalIP')?.address
  const fields = {
    ipv4: internal,
    architecture: nodeInfo.architecture,
    operatingSystem: nodeInfo.operatingSystem,
    osImage: nodeInfo.osImage,
    kernelVersion: nodeInfo.kernelVersion,
    kubeletVersion: nodeInfo.kubeletVersion,
    age: metadata.creationTimestamp && shortDuration(now - Date.parse(metadata.creationTimestamp)),
  }
  return {
    nodeName: metadata.name,
    ...(Object.fromEntries(
      Object.entries(fields).filter(([, value]) => value !== undefined),
    ) as Partial<Node>),
    nodeStatus: ready ?? { conditionType: 'Ready', status: 'Unknown', reason: 'NoStatus', message: '' },
    nodeHealth,
  }
}

type PoolNode = ClusterDetails['status']['nodePools'][number]['nodes'][number]

function poolNodeOf(node: Node, { state }: ClusterStatus): PoolNode {
  const { nodeName, ipv4, architecture, kubeletVersion, age, nodeStatus } = node
  const isReady = nodeStatus.status === 'True'
  return {
    nodeName,
    nodeState: state === 'Deleting' ? state : isReady ? 'Running' : state === 'Running' ? 'Error' : state,
    ...(ipv4 === undefined ? {} : { ipv4 }),
    ...(architecture === undefined ? {} : { architecture }),
    ...(kubeletVersion === undefined ? {} : { k8sVersion: kubeletVersion }),
    ...(age === undefined ? {} : { age }),
    health: isReady ? { status: 'Healthy' } : { status: 'Unhealthy', reason: nodeStatus.message },
  }
}

interface ServiceSpec {
  readonly type?: string
  readonly clusterIP?: string
  readonly ports?: readonly {
    readonly name?: string
    readonly port: number
    readonly nodePort?: number
    readonly protocol?: string
    readonly targetPort?: number | string
    readonly appProtocol?: string
  }[]
}

/** A service under an address at which it can be reached; a headless one has none. */
function serviceOf(
  { metadata, spec, status }: KubernetesObject,
  nodeAddress: string,
  hide: Hide,
): ClusterDetails['status']['services'] {
  const { type, clusterIP = '', ports = [] } = (spec ?? {}) as ServiceSpec
  const balanced = (
    status as { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] } } | undefined
  )?.loadBalancer?.ingress?.[0]
  const host = balanced?.ip ?? balanced?.hostname ?? (type === 'NodePort' ? nodeAddress : clusterIP)
  if (host === '' || host === 'None') return []
  return [
    {
      name: hide(`${metadata.namespace ?? ''}/${metadata.name}`),
      host,
      ports: ports.map(({ targetPort, ...port }) => ({
        ...port,
        ...(targetPort === undefined ? {} : { targetPort: String(targetPort) }),
      })),
    },
  ]
}

/** A step as the API shows it. */
export function stepOf(step: StepRecord, hide: Hide): ClusterDetails['status']['steps'][number] {
  const { key, title, pack, state, failures, reason, startedAt, endedAt, retryMs } = step
  return {
    key: hide(key),
    title: hide(title),
    state,
    failures,
    ...(pack === '' ? {} : { pack }),
    ...(reason === '' ? {} : { reason }),
    startTimestamp: timeOf(startedAt),
    ...(endedAt === null ? {} : { endTimestamp: timeOf(endedAt) }),
    ...(endedAt === null || retryMs === null ? {} : { nextTryTimestamp: timeOf(endedAt + retryMs) }),
  }
}
