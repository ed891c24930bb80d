import { troublesOf, type Observed, type PackObserved } from './observed.ts'
import { withTrouble } from '../packs/troubles.ts'
import type { clusterPhases, clusterStates } from '../schemas.ts'
import type { StepRecord } from './step-store.ts'
import { shownPack, type DesiredState } from '../desired/desired-state.ts'

/** Status of the cluster, for the API. */
export interface ClusterStatus {
  readonly state: (typeof clusterStates)[number]
  readonly phase: (typeof clusterPhases)[number]
  /** Current work or wait, or the cause of the failure; may be empty. */
  readonly reason: string
  readonly health: { readonly status: 'Healthy' | 'Unhealthy'; readonly reason?: string }
}

/** Time that is left to a revision, and what follows. */
export interface Deadline {
  readonly leftMs: number
  readonly action: 'takenBack' | 'stuck'
}

/** Accepted; nothing was started. */
export const pending: ClusterStatus = {
  state: 'Provisioning',
  phase: 'Pending',
  reason: 'accepted; nothing was started yet',
  health: { status: 'Unhealthy', reason: 'the cluster is being set up' },
}

/** Another revision is started. */
export const started: ClusterStatus = {
  state: 'Provisioning',
  phase: 'Pending',
  reason: 'a revision is begun',
  health: { status: 'Unhealthy', reason: 'the cluster is being changed' },
}

export interface StatusInput {
  readonly desired: DesiredState
  readonly observed: Observed
  readonly isDeleting: boolean
  /** The cluster was Running with this generation. */
  readonly hasRun: boolean
  /** The cluster was Running with an earlier generation. */
  readonly isUpdate: boolean
  /** Why it cannot be taken back to its last good revision; empty otherwise. */
  readonly stuck: string
  readonly steps: readonly StepRecord[]
  /** Key of the steps that are still planned; a failure of another one is history. */
  readonly planned: ReadonlySet<string>
  /** Silence of the API server of a control plane that was set up, milliseconds. */
  readonly silentMs: number
}

const silentTooLongMs = 60_000

/** The state of the cluster by the table of docs/operations.md, "The cluster". Pure. */
export function statusOf(input: StatusInput): ClusterStatus {
  const { desired, observed, isDeleting, hasRun, isUpdate, stuck, steps, planned, silentMs } = input
  const failed = steps.filter(
    ({ state, failures, key }) => state !== 'done' && failures > 0 && planned.has(key),
  )
  const running = steps.find(({ state }) => state === 'running')
  const failure = failed.map(({ title, reason }) => `${title}: ${reason}`).join('; ')
  const cause = controlPlaneCause(desired, observed)
  const doing = [cause, failure || running?.title || ''].filter(Boolean).join('; ')
  const trouble = troubleOf(desired, observed)
  const [first] = troublesOf(observed)
  const health: ClusterStatus['health'] =
    trouble === '' && failure === ''
      ? { status: 'Healthy' }
      : { status: 'Unhealthy', reason: withTrouble(trouble || failure, first) }

  if (isDeleting) return { state: 'Deleting', phase: 'Deleting', reason: doing, health: goingAway }
  const { controlPlane, change } = observed.engine
  // A change of the version has times without an API, and limits of its own.
  const isSilent = controlPlane === 'complete' && !change && silentMs >= silentTooLongMs
  if (stuck !== '') return { state: 'Error', phase: 'Failed', reason: stuck, health }
  // The steps that wait for the API server of a cluster that ran give up later, and say no more.
  if (failure !== '' && !(isSilent && hasRun))
    return { state: 'Error', phase: 'Failed', reason: doing, health }
  if (isSilent)
    return { state: 'Error', phase: 'Unknown', reason: cause || 'the API server does not answer', health }
  const isRunning = hasRun || trouble === '' || (isUpdate && blockerOf(desired, observed) === '')
  if (isRunning) return { state: 'Running', phase: 'Running', reason: '', health }
  const isReady = observed.engine.node?.isReady === true
  const phase = isReady ? 'Provisioned' : 'Provisioning'
  return { state: 'Provisioning', phase, reason: withTrouble(doing || trouble, first), health }
}

/** Change of this host with which its control plane cannot run; empty for none. */
const controlPlaneCause = (
  { node }: DesiredState,
  { engine: { controlPlane, followsHostName }, missingAddress = '' }: Observed,
): string => {
  if (missingAddress !== '') return missingAddress
  return controlPlane === 'complete' && followsHostName !== undefined && followsHostName !== node.name
    ? `this host was renamed: it is called ${followsHostName}, and its node is ${node.name}; the kubelet gets the name of the node`
    : ''
}

const goingAway: ClusterStatus['health'] = { status: 'Unhealthy', reason: 'the cluster is being deleted' }

/** Known difference from a running cluster; empty for none. */
export const troubleOf = (desired: DesiredState, observed: Observed): string =>
  lackOf(desired, observed, ({ isAvailable }) => isAvailable) || (observed.engine.addonTrouble ?? '')

/**
 * Blocker of an update on its way to Running: as `troubleOf`, without packs that were available in their desired form and went down, and
 * without CoreDNS and kube-proxy, which are of the cluster that ran before.
 */
export const blockerOf = (desired: DesiredState, observed: Observed): string =>
  lackOf(desired, observed, ({ wasAvailable }) => wasAvailable)

function lackOf(desired: DesiredState, observed: Observed, isDone: (pack: PackObserved) => boolean): string {
  const { engine, packs, isAddressHeld, settings } = observed
  if (engine.controlPlane !== 'complete') return 'the control plane is not set up'
  if (engine.change?.phase === 'restoring') return `Kubernetes ${engine.change.from} is being restored`
  if (engine.change) return `Kubernetes is being changed from ${engine.change.from} to ${engine.change.to}`
  if (engine.version !== desired.kubernetes.version)
    return `Kubernetes ${engine.version} is not ${desired.kubernetes.version} yet`
  if (!engine.isConfigured) return 'the configuration of Kubernetes is not applied'
  const cause = controlPlaneCause(desired, observed)
  if (cause !== '') return cause
  if (!isAddressHeld) return 'this host does not hold the virtual address'
  for (const unit of ['containerd', 'kubelet'] as const)
    if (engine[unit] !== 'running') return `${unit} does not run`
  if (engine.api !== 'answers') return 'the API server does not answer'
  if (!engine.node) return 'the node is not registered'
  if (!engine.node.isReady) return `the node ${engine.node.name} is not ready: ${engine.node.message}`
  const missing = desired.packs.flatMap(({ id, digest }) => {
    const seen = packs.get(id)
    if (seen?.appliedDigest !== digest) return [`${shownPack(id)} is not applied`]
    return isDone(seen) ? [] : [`${shownPack(id)}: ${seen.message}`]
  })
  for (const id of packs.keys())
    if (!desired.packs.some((pack) => pack.id === id)) missing.push(`${shownPack(id)} is not removed`)
  if (missing.length === 0) {
    // A setting that no step can apply has a condition; it keeps no workload from running.
    if (settings.ntpServers.isDue) return 'the NTP servers of the host are not as they are wanted'
    if (settings.sshKeys.isDue) return 'the SSH keys of the host are not as they are wanted'
  }
  const [first = '', ...more] = missing
  return more.length === 0 ? first : `${first}, and ${more.length} more pack${more.length === 1 ? '' : 's'}`
}
