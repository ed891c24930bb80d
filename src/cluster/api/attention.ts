import type { Attention } from '../../root/room.ts'
import type { PreflightProblem } from '../desired/preflight-codes.ts'
import type { ClusterRevisions } from '../desired/schemas.ts'
import type { ConditionTypeName } from '../events/condition-types.ts'
import type { PackInfo } from '../packs/schemas.ts'
import type { ClusterDetails } from '../schemas.ts'

/** The cluster as the API shows it, so that nothing secret is in it. */
export interface AttentionInput {
  readonly details: ClusterDetails
  /** The newest first. */
  readonly revisions: ClusterRevisions['items']
  readonly packs: readonly PackInfo[]
  /** Whether the cluster is changed on this host, and not by a platform. */
  readonly isManagedHere: boolean
}

type Item = Omit<Attention, 'since'> & { readonly since?: string | undefined }

/** What an operator has to know or to do about the cluster. Pure. */
export function attentionOfCluster(input: AttentionInput): Attention[] {
  const { details, packs, revisions, isManagedHere } = input
  const troubles = ofTroubles(details)
  const inTrouble = new Set(details.status.troubles.map(({ pack }) => pack))
  const ofPacks = packs.filter((each) => !inTrouble.has(nameOf(each))).flatMap(ofPack)
  const found: readonly Item[] = [
    ...ofState(details, troubles.length + ofPacks.length > 0),
    ...troubles,
    ...ofPacks,
    ...ofRevisions(details, revisions, isManagedHere),
    ...ofConditions(details),
  ]
  return found.map(({ since, ...item }) => ({
    ...item,
    ...(since === undefined ? {} : { since: Date.parse(since) }),
  }))
}

/** Time since which a condition does not hold; undefined where it does, or is not known. */
function since({ status }: ClusterDetails, type: ConditionTypeName): string | undefined {
  const found = status.clusterConditions.find((each) => each.type === type)
  return found?.status === 'True' ? undefined : found?.lastTransitionTime
}

/** @param isExplained whether the pods or packs that keep it from being healthy are told */
function ofState(details: ClusterDetails, isExplained: boolean): readonly Item[] {
  const { clusterState, clusterStateReason: reason, phase, health } = details.status
  const object = { kind: 'cluster', name: details.metadata.name ?? '' }
  if (clusterState === 'Provisioning' || clusterState === 'Deleting')
    return [
      {
        code: clusterState === 'Deleting' ? 'ClusterDeleting' : 'ClusterProvisioning',
        severity: 'info',
        message: `the cluster is ${clusterState === 'Deleting' ? 'being deleted' : 'being set up'}${reason === '' ? '' : `: ${reason}`}`,
        command: 'edgehostctl cluster watch',
        object,
      },
    ]
  if (phase === 'Unknown')
    return [
      {
        code: 'ApiSilent',
        severity: 'error',
        message: `the cluster: ${reason}`,
        command: 'journalctl -u kubelet --since -10min',
        object,
        since: since(details, 'ApiAnswers'),
      },
    ]
  if (clusterState === 'Error')
    return [
      {
        code: 'ClusterFailed',
        severity: 'error',
        message: `the cluster: ${reason}`,
        command: 'edgehostctl cluster get',
        object,
        since: since(details, 'ClusterRunning'),
      },
    ]
  if (health.status === 'Healthy' || isExplained) return []
  return [
    {
      code: 'ClusterUnhealthy',
      severity: 'error',
      message: `the cluster: ${health.reason ?? health.status}`,
      command: 'edgehostctl cluster get',
      object,
      since: since(details, 'ClusterHealthy'),
    },
  ]
}

// Reasons for which the container has lines to read.
const withLines = new Set(['Crashing', 'ProbeFailing'])

const ofTroubles = ({ status }: ClusterDetails): Item[] =>
  status.troubles.map(({ pack, reason, message, namespace, pod, sinceTimestamp }) => ({
    code: 'PodsFailing',
    severity: 'error',
    message: `${pack === '' ? 'Kubernetes' : `the pack ${pack}`}: ${reason}: ${message}`,
    command: withLines.has(reason)
      ? `edgehostctl cluster logs ${pod} --namespace ${namespace}`
      : `edgehostctl cluster kubectl -- describe --namespace ${namespace} ${reason === 'PodsNotMade' ? 'replicaset' : 'pod'} ${pod}`,
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
  { status }: ClusterDetails,
  revisions: AttentionInput['revisions'],
  isManagedHere: boolean,
): readonly Item[] {
  const [newest] = revisions
  const items: Item[] = []
  const applying = revisions.find((each) => each.isActive && each.outcome === 'applying')
  const { deadline } = status
  if (applying && deadline)
    items.push({
      code: 'RevisionApplying',
      severity: deadline.action === 'stuck' ? 'warning' : 'info',
      message:
        deadline.action === 'stuck'
          ? `revision ${applying.revision} is a way back, and has ${deadline.leftSeconds} s left to run; after that an operator has to decide`
          : `revision ${applying.revision} is being applied; it is taken back in ${deadline.leftSeconds} s if the cluster does not run with it by then`,
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
  // Of a later change nobody asks any more; the way back itself may be a revision.
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

/** Conditions beside the state and the packs that need somebody. */
const ofConditions = ({ status }: ClusterDetails): Item[] =>
  status.clusterConditions.flatMap(({ type, status: is, message, lastTransitionTime }) => {
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
