import type { Compared } from '../../base/described-change.ts'
import { createHideOf } from '../../definition/slots/secrets.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import type { Clock } from '../../system/clock.ts'
import type { ClusterRevisions } from '../desired/schemas.ts'
import type { ClusterRecord, ClusterStore } from '../cluster-store.ts'
import type { ClusterState, Details } from './details.ts'
import { comparedConfiguration, documentOf, etagOf, shownRevision } from '../desired/revision-document.ts'
import type { Revision, RevisionStore } from '../desired/revisions.ts'
import type { ClusterConfiguration, ClusterDetails, ClusterNodes, MachinePools } from '../schemas.ts'
import type { ClusterStatus } from '../loop/status.ts'

export interface ReadingOptions {
  readonly store: ClusterStore
  readonly revisions: RevisionStore
  readonly status: () => ClusterStatus | undefined
  readonly details: Details
  /** The kubeconfig of the administrator. @throws Error while there is none */
  readonly kubeconfig: () => Promise<string>
  readonly hostId: string
  readonly clock: Clock
}

/** Reads of the API; each throws AppError NotFound without a cluster. */
export interface Reading {
  /** The newest accepted configuration, masked. */
  posted(): { readonly document: ClusterConfiguration; readonly etag: string }
  /** The same for the audit trail, with sensitive values, only to compare. */
  compared(): Compared
  revisions(): ClusterRevisions
  /** @param receiver of the kubeconfig; undefined: it is left out */
  details(receiver: KubeconfigReceiver | undefined): Promise<{
    readonly details: ClusterDetails
    /** The kubeconfig is in it for the first time in this session. */
    readonly isFirstDelivery: boolean
  }>
  /** @throws AppError NotFound also while there is none */
  kubeconfig(): Promise<{ readonly name: string; readonly uid: string; readonly text: string }>
  nodes(): Promise<ClusterNodes>
  /** The part of the details that needs no answer of the API server. */
  state(): ClusterState
  steps(): ClusterDetails['status']['steps']
  pools(): MachinePools
}

export interface KubeconfigReceiver {
  /** Undefined for root on the local socket, which has no sessions: its deliveries count once an hour. */
  readonly sessionUid: string | undefined
}

const hourMs = 3_600_000
const mostSessions = 1_000

export function createReading(options: ReadingOptions): Reading {
  const { store, revisions, details, hostId, clock } = options
  /** Sessions that have got the kubeconfig, the oldest delivery first. */
  const delivered = new Set<string>()

  function isFirst(session: string): boolean {
    if (delivered.has(session)) return false
    delivered.add(session)
    const [oldest = ''] = delivered
    if (delivered.size > mostSessions) delivered.delete(oldest)
    return true
  }

  function current(): ClusterRecord {
    const record = store.current()
    if (!record) throw noCluster()
    return record
  }

  return {
    posted() {
      const record = current()
      const document = documentOf(record, shownRevision(revisions, record))
      return { document, etag: etagOf(document) }
    },
    compared() {
      const record = current()
      return comparedConfiguration(record, shownRevision(revisions, record))
    },
    revisions() {
      const record = current()
      return { items: revisions.list().map((each) => itemOf(each, record)) }
    },
    async details(receiver) {
      const record = current()
      const status = () => options.status() ?? record.status
      const config = receiver && (await options.kubeconfig().catch(() => undefined))
      const document = await details.details(record, status, config)
      if (config === undefined) return { details: document, isFirstDelivery: false }
      const session = receiver?.sessionUid ?? `local ${Math.floor(clock.monotonic() / hourMs)}`
      return { details: document, isFirstDelivery: isFirst(`${record.uid} ${session}`) }
    },
    async kubeconfig() {
      const { uid, name } = current()
      const text = await options.kubeconfig().catch(() => undefined)
      if (text === undefined)
        throw new AppError(
          generalErrors.NotFound,
          'there is no kubeconfig yet: the control plane is not set up; wait until the cluster runs',
        )
      return { name, uid, text }
    },
    nodes: () => details.nodes(current()),
    state() {
      const record = current()
      return details.state(record, options.status() ?? record.status)
    },
    steps: () => details.steps(current()),
    pools() {
      const { posted: given, summary } = current()
      const { node } = summary
      const [pool = { hosts: [] }] = given.spec?.cloudConfig?.spec?.machinePoolConfig ?? []
      const host = { ...pool.hosts[0], hostUid: hostId, hostName: node.name, hostAddress: node.address }
      return {
        items: [
          {
            ...pool,
            name: node.poolName,
            hosts: [host],
            size: 1,
            isControlPlane: true,
            useControlPlaneAsWorker: true,
          },
        ],
      }
    },
  }
}

function itemOf(revision: Revision, { generation }: ClusterRecord): ClusterRevisions['items'][number] {
  const { at, by, origin, summary, outcome, reason, scheduleAt, endedAt, sensitive } = revision
  const { definition, kubernetes } = summary
  const time = (ms: number) => new Date(ms).toISOString()
  return {
    revision: revision.generation,
    creationTimestamp: time(at),
    by,
    origin,
    definition: { name: definition.name, version: definition.version },
    kubernetesVersion: kubernetes.version,
    outcome,
    ...(reason === '' ? {} : { reason: createHideOf(sensitive)(reason) }),
    ...(scheduleAt === null ? {} : { scheduleAt: time(scheduleAt) }),
    ...(endedAt === null ? {} : { endTimestamp: time(endedAt) }),
    isActive: revision.generation === generation,
  }
}

/** There is no cluster. */
export const noCluster = () =>
  new AppError(
    generalErrors.NotFound,
    'this host has no cluster; it is created here, or on the platform that manages this host',
  )
