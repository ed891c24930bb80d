import type { Attention } from '../../root/room.ts'
import type { ClusterRecord, ClusterStore } from '../cluster-store.ts'
import type { DesiredState } from '../desired/desired-state.ts'
import type { PreflightProblem } from '../desired/preflight-codes.ts'
import type { ClusterRevisions } from '../desired/schemas.ts'
import type { ClusterHost } from '../host/cluster-host.ts'
import type { ConditionTypeName } from '../events/condition-types.ts'
import type { ClusterCurrentApplications, PackInfo } from '../packs/schemas.ts'
import type { ClusterState } from './details.ts'
import type { Reading } from './reading.ts'

/** The cluster as the API shows it, so that nothing secret is in it. */
export interface AttentionInput {
  readonly name: string
  readonly state: ClusterState
  /** The newest first. */
  readonly revisions: ClusterRevisions['items']
  readonly packs: readonly PackInfo[]
  /** Whether the cluster is changed on this host, and not by a platform. */
  readonly isManagedHere: boolean
}

type Item = Omit<Attention, 'since'> & { readonly since?: string | undefined }

/** What an operator has to know or to do about the cluster. Pure. */
export function attentionOfCluster(input: AttentionInput): Attention[] {
  const { name, state, packs, revisions, isManagedHere } = input
  const troubles = ofTroubles(state)
  const inTrouble = new Set(state.troubles.map(({ pack }) => pack))
  const ofPacks = packs.filter((each) => !inTrouble.has(nameOf(each))).flatMap(ofPack)
  const found: readonly Item[] = [
    ...ofState(name, state, {
      isExplained: troubles.length + ofPacks.length > 0,
      hasRun: revisions.some(({ outcome }) => outcome === 'good'),
    }),
    ...troubles,
    ...ofPacks,
    ...ofRevisions(state, revisions, isManagedHere),
    ...ofConditions(state),
  ]
  return found.map(({ since, ...item }) => ({
    ...item,
    ...(since === undefined ? {} : { since: Date.parse(since) }),
  }))
}

/** Time since which a condition does not hold; undefined where it does, or is not known. */
function since({ clusterConditions }: ClusterState, type: ConditionTypeName): string | undefined {
  const found = clusterConditions.find((each) => each.type === type)
  return found?.status === 'True' ? undefined : found?.lastTransitionTime
}

/**
 * @param told.isExplained whether the pods or packs that keep it from being healthy are told
 * @param told.hasRun whether it has run before, so that it is being changed now
 */
function ofState(
  name: string,
  state: ClusterState,
  { isExplained, hasRun }: { readonly isExplained: boolean; readonly hasRun: boolean },
): readonly Item[] {
  const { clusterState, clusterStateReason: reason, phase, health } = state
  const object = { kind: 'cluster', name }
  const isDeleting = clusterState === 'Deleting'
  if (isDeleting || clusterState === 'Provisioning')
    return [
      {
        code: isDeleting ? 'ClusterDeleting' : 'ClusterProvisioning',
        severity: 'info',
        message: `the cluster is being ${isDeleting ? 'deleted' : hasRun ? 'changed' : 'set up'}${reason === '' ? '' : `: ${reason}`}`,
        command: 'edgehostctl cluster watch',
        object,
      },
    ]
  const error = (code: string, why: string, type: ConditionTypeName, command = 'edgehostctl cluster get') => [
    {
      code,
      severity: 'error',
      message: `the cluster: ${why}`,
      command,
      object,
      since: since(state, type),
    } as const,
  ]
  if (phase === 'Unknown')
    return error('ApiSilent', reason, 'ApiAnswers', 'journalctl -u kubelet --since -10min')
  if (clusterState === 'Error') return error('ClusterFailed', reason, 'ClusterRunning')
  if (health.status === 'Healthy' || isExplained) return []
  return error('ClusterUnhealthy', health.reason ?? health.status, 'ClusterHealthy')
}

// Reasons for which the container has lines to read.
const withLines = new Set(['Crashing', 'ProbeFailing'])

const ofTroubles = ({ troubles }: ClusterState): Item[] =>
  troubles.map(({ pack, reason, message, namespace, pod, workload, sinceTimestamp }) => ({
    code: 'PodsFailing',
    severity: 'error',
    message: `${pack === '' ? 'Kubernetes' : `the pack ${pack}`}: ${reason}: ${message}`,
    command: withLines.has(reason)
      ? `edgehostctl cluster logs ${pod} --namespace ${namespace}`
      : `edgehostctl cluster kubectl -- describe --namespace ${namespace} ${reason === 'PodsNotMade' && workload !== undefined ? workload : `pod/${pod}`}`,
    object: { kind: 'Pod', name: pod, namespace },
    since: sinceTimestamp,
  }))

const nameOf = ({ name, displayName = '' }: PackInfo) =>
  displayName === '' ? name : `${name}/${displayName}`

function ofPack(pack: PackInfo): readonly Item[] {
  const { status, conditions } = pack
  if (status !== 'Failed' && status !== 'Unavailable') return []
  const message = conditions.find((each) => each.status === 'False')?.message ?? ''
  return [
    {
      code: 'PackFailing',
      severity: 'error',
      message: `the pack ${nameOf(pack)} is ${status}${message === '' ? '' : `: ${message}`}`,
      command: 'edgehostctl cluster get',
      object: { kind: 'pack', name: nameOf(pack) },
    },
  ]
}

function ofRevisions(
  { deadline, phase }: ClusterState,
  revisions: AttentionInput['revisions'],
  isManagedHere: boolean,
): readonly Item[] {
  const [newest] = revisions
  const items: Item[] = []
  const applying = revisions.find((each) => each.isActive && each.outcome === 'applying')
  if (applying && deadline)
    items.push({
      code: 'RevisionApplying',
      severity: deadline.action === 'stuck' ? 'warning' : 'info',
      message:
        deadline.action === 'stuck'
          ? `revision ${applying.revision} is a way back, and has ${deadline.leftSeconds} s left to run; after that an operator has to decide`
          : `revision ${applying.revision} is being applied; it is taken back in ${deadline.leftSeconds} s, unless the cluster runs with it${phase === 'Unknown' ? ', or the API server answers again,' : ''} by then`,
      command: 'edgehostctl cluster watch',
      object: { kind: 'revision', name: String(applying.revision) },
      since: applying.creationTimestamp,
    })
  const pending = revisions.find(({ outcome }) => outcome === 'held' || outcome === 'waiting')
  if (pending?.outcome === 'held')
    items.push({
      code: 'RevisionHeld',
      severity: 'warning',
      message: `revision ${pending.revision} is held${pending.reason === undefined ? '' : `: ${pending.reason}`}; give the missing values`,
      command: isManagedHere ? 'edgehostctl cluster diff' : 'edgehostctl platform status',
      object: { kind: 'revision', name: String(pending.revision) },
      since: pending.creationTimestamp,
    })
  else if (pending)
    items.push({
      code: 'RevisionWaiting',
      severity: 'info',
      message: `revision ${pending.revision} waits${pending.scheduleAt === undefined ? '' : ` for ${pending.scheduleAt}`}`,
      command: 'edgehostctl cluster revisions',
      object: { kind: 'revision', name: String(pending.revision) },
      since: pending.creationTimestamp,
    })
  const failed = revisions.find(({ outcome }) => outcome === 'rolledBack' || outcome === 'failed')
  // A failed change is history once a later one was accepted; the way back itself may be a revision.
  if (failed && newest && (failed === newest || newest.origin === 'goingBack'))
    items.push({
      code: 'RevisionTakenBack',
      severity: 'warning',
      message: `revision ${failed.revision} was taken back${failed.reason === undefined ? '' : `: ${failed.reason}`}`,
      command: 'edgehostctl cluster revisions',
      object: { kind: 'revision', name: String(failed.revision) },
      since: failed.endTimestamp,
    })
  return items
}

const commandsOf: Partial<Readonly<Record<ConditionTypeName, string>>> = {
  CertificatesValid: 'edgehostctl cluster certificates',
  AuthoritiesValid: 'edgehostctl cluster certificates',
  NtpServersApplied: 'edgehostctl cluster settings',
  SshKeysApplied: 'edgehostctl cluster settings',
}

/** Conditions beside the state and the packs for which an operator has to act. */
const ofConditions = ({ clusterConditions }: ClusterState): Item[] =>
  clusterConditions.flatMap(({ type, status: is, message, lastTransitionTime }) => {
    const command = commandsOf[type as ConditionTypeName]
    if (command === undefined || is !== 'False') return []
    return [
      {
        code: 'ConditionFalse',
        severity: 'warning',
        message: message ?? `the condition ${type} does not hold`,
        command,
        object: { kind: 'condition', name: type },
        since: lastTransitionTime,
      },
    ]
  })

/** What this host lacks for a cluster. Pure. */
export const attentionOfHost = (lacking: readonly PreflightProblem[]): Attention[] =>
  lacking.map(({ code, severity, message }) => ({
    code: 'HostLacking',
    severity: severity === 'error' ? 'error' : 'warning',
    message,
    object: { kind: 'preflightCheck', name: code },
  }))

interface ClusterAttentionOptions {
  readonly store: Pick<ClusterStore, 'current'>
  readonly reading: Pick<Reading, 'state' | 'revisions'>
  readonly applications: (desired: DesiredState) => Promise<ClusterCurrentApplications>
  readonly readDesired: (record: ClusterRecord) => Promise<DesiredState>
  readonly host: Pick<ClusterHost, 'lacking'>
  /** The definition that a first cluster would be made with; undefined for none. */
  readonly waitingDefinition: () => string | undefined
  readonly isManagedHere: boolean
}

/** What the cluster, or the lack of one, needs of an operator. The API server is not asked: what was observed last counts. */
export function createClusterAttention(options: ClusterAttentionOptions) {
  const { store, reading, host, isManagedHere } = options

  async function withoutCluster(): Promise<readonly Attention[]> {
    const waiting = options.waitingDefinition()
    if (waiting === undefined) return []
    return [
      {
        code: 'DefinitionWaits',
        severity: 'info',
        message: `the definition ${waiting} is on this host, and no cluster`,
        command: isManagedHere
          ? 'edgehostctl cluster create --name NAME --dry-run'
          : 'edgehostctl platform status',
        object: { kind: 'definition', name: waiting },
      },
      ...attentionOfHost(await host.lacking(undefined)),
    ]
  }

  return async (): Promise<readonly Attention[]> => {
    const record = store.current()
    if (!record) return withoutCluster()
    const desired = await options.readDesired(record)
    const [lacking, { clusterProfileTemplates }] = await Promise.all([
      host.lacking(desired),
      options.applications(desired),
    ])
    const ofCluster = attentionOfCluster({
      name: record.name,
      state: reading.state(),
      revisions: reading.revisions().items,
      packs: clusterProfileTemplates.flatMap((profile) => profile.packs),
      isManagedHere,
    })
    return [...ofCluster, ...attentionOfHost(lacking)]
  }
}
