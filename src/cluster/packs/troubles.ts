// Why pods do not run, from objects of Kubernetes alone: the states of containers as the kubelet writes them (k8s.io/kubernetes,
// pkg/kubelet/container and pkg/kubelet/images), the conditions and messages of the scheduler, and warnings. Messages are stable while the
// trouble is the same: what only counts, as the pause of a back-off, is left out, since each new text would be a change of the status.

import { isRecord } from '../../base/json.ts'
import { maskShapes } from '../../base/mask.ts'
import { conditionOf, fieldAt, isTrue, listAt, numberAt, textAt } from '../../kubernetes/fields.ts'
import type { KubernetesObject } from '../../kubernetes/client.ts'
import { shownPack } from '../desired/desired-state.ts'
import type { PackTrouble, Trouble } from '../loop/observed.ts'

/** A warning of Kubernetes, or another event of an object. */
export interface Warning {
  readonly kind: string
  readonly name: string
  readonly reason: string
  readonly message: string
  /** Of a container of the pod; empty where it is about the whole object. */
  readonly container: string
  /** Its last time, and its first; RFC 3339, or empty. */
  readonly at: string
  readonly since: string
}

/** An event as its reader wants it. Which of its times are set depends on the API that its component used. */
export function warningOf(event: KubernetesObject): Warning {
  const text = (...path: readonly string[]) => textAt(event, path)
  const made = event.metadata.creationTimestamp ?? ''
  return {
    kind: text('involvedObject', 'kind'),
    name: text('involvedObject', 'name'),
    reason: text('reason'),
    // That of a probe without output ends with a colon.
    message: oneLine(text('message')).replace(/:$/, ''),
    container: /\{(.+)\}/.exec(text('involvedObject', 'fieldPath'))?.[1] ?? '',
    at: text('series', 'lastObservedTime') || text('lastTimestamp') || text('eventTime') || made,
    since: text('firstTimestamp') || text('eventTime') || made,
  }
}

/** Facts beside the pod itself. */
export interface PodSurroundings {
  /** Warnings about any pod of its namespace. */
  readonly warnings: readonly Warning[]
  /** Claims of its namespace by name; undefined where they were not read. */
  readonly claims?: ReadonlyMap<string, KubernetesObject> | undefined
  /** Events about claims, also those that are no warnings: that no volume fits is none. */
  readonly claimEvents?: readonly Warning[]
  /** Taints of the nodes; undefined where they were not read. */
  readonly taints?: readonly Part[] | undefined
  /** Milliseconds since 1970. */
  readonly now: number
}

type Problem = Pick<Trouble, 'reason' | 'message'> & { readonly since?: string }
type Part = Readonly<Record<string, unknown>>

const nothing: PodSurroundings = { warnings: [], now: 0 }

/** Why a pod does not run, one entry a container, or one for the whole pod; empty if it runs, ends well, or is on its way. */
export function troublesOfPod(
  pod: KubernetesObject,
  surroundings: PodSurroundings = nothing,
): readonly Trouble[] {
  const { name, namespace = '', deletionTimestamp } = pod.metadata
  if (deletionTimestamp !== undefined) return []
  const own = surroundings.warnings
    .filter((each) => each.kind === 'Pod' && each.name === name)
    .toSorted((one, other) => other.at.localeCompare(one.at))
  const workload = workloadOf(pod)
  const trouble = ({ since = notReadySince(pod), reason, message }: Problem, container = ''): Trouble => ({
    reason,
    // What a probe prints is of the container.
    message: maskShapes(message),
    namespace,
    pod: name,
    ...(workload === undefined ? {} : { workload: `${workload.kind}/${workload.name}` }),
    ...(container === '' ? {} : { container }),
    ...(since === '' ? {} : { sinceTimestamp: since }),
  })
  const found = statusesOf(pod).flatMap(({ status, isInit }) => {
    const container = textAt(status, ['name'])
    const problem = problemOfContainer(pod, status, isInit, own)
    return problem ? [trouble(problem, container)] : []
  })
  if (found.length > 0) return found
  const problem = problemOfPod(pod, surroundings, own)
  return problem ? [trouble(problem, problem.container)] : []
}

/** A trouble in one line: the pod, the container, and the message. */
export const textOfTrouble = ({ pod, container, message, reason }: Trouble): string =>
  reason === 'PodsNotMade'
    ? message
    : `pod ${pod}: ${container === undefined ? '' : `container ${container}: `}${message}`

/**
 * A problem with the first pod that does not run, where the problem does not name it yet: helm, or the wait for workloads, may have.
 * @param first with the `id` of its pack where the problem is not of that pack alone
 */
export function withTrouble(problem: string, first: Trouble | PackTrouble | undefined): string {
  const text = first ? textOfTrouble(first) : ''
  if (!first || problem.includes(text)) return problem
  const pack = 'pack' in first ? shownPack(first.pack) : ''
  return [problem, pack === '' ? text : `${pack}: ${text}`].filter(Boolean).join('; ')
}

const statusesOf = (pod: KubernetesObject) =>
  (['initContainerStatuses', 'containerStatuses'] as const).flatMap((list) =>
    listAt(pod, ['status', list]).map((status) => ({ status, isInit: list === 'initContainerStatuses' })),
  )

/** Since when it is not ready or not scheduled; empty where that is not known. */
function notReadySince(pod: KubernetesObject): string {
  for (const type of ['PodScheduled', 'Ready']) {
    const found = listAt(pod, ['status', 'conditions']).find((each) => each.type === type)
    if (found?.status === 'False') return textAt(found, ['lastTransitionTime'])
  }
  return ''
}

// States of a container that is on its way.
const usual = new Set(['ContainerCreating', 'PodInitializing', ''])
const ofImages = new Set([
  ...['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'ErrImageNeverPull', 'ImageInspectError'],
  ...['RegistryUnavailable', 'SignatureValidationFailed'],
])
// A container that was made and could not be started, as where its program is missing.
const startErrors = new Set(['StartError', 'ContainerCannotRun'])

function problemOfContainer(
  pod: KubernetesObject,
  status: Part,
  isInit: boolean,
  warnings: readonly Warning[],
): Problem | undefined {
  const over = fieldAt(status, ['state', 'terminated'])
  const waiting = fieldAt(status, ['state', 'waiting'])
  const ended = fieldAt(status, ['lastState', 'terminated'])
  if (isRecord(over)) {
    // One that shall run on is started again, whatever it ended with; the first time may be a start of its pod.
    const isRunOn = !isInit && textAt(pod, ['spec', 'restartPolicy']) === 'Always'
    const isAgain = isRunOn && (numberAt(status, ['restartCount']) ?? 0) > 0
    return over.exitCode !== 0 || isAgain ? endProblem('', over, status, warnings) : undefined
  }
  if (!isRecord(waiting)) return undefined
  const reason = textAt(waiting, ['reason'])
  if (usual.has(reason)) return undefined
  if (ofImages.has(reason)) return imageProblem(status, reason, textAt(waiting, ['message']), warnings)
  if (reason === 'CrashLoopBackOff')
    return endProblem(reason, isRecord(ended) ? ended : undefined, status, warnings)
  return { reason: 'CreateContainer', message: joined(reason, textAt(waiting, ['message'])) }
}

/** A container that has ended. One that the kubelet ends for a probe has the problem of the probe, not of its exit code. */
function endProblem(
  state: string,
  ended: Part | undefined,
  status: Part,
  warnings: readonly Warning[],
): Problem {
  const reason = textAt(ended, ['reason'])
  if (startErrors.has(reason))
    return { reason: 'CreateContainer', message: joined(reason, textAt(ended, ['message'])) }
  const probe = warnings.find(
    (each) =>
      isProbe(each) &&
      each.container === textAt(status, ['name']) &&
      /^(?:Liveness|Startup) probe/.test(each.message) &&
      each.at >= textAt(ended, ['startedAt']),
  )
  if (probe && ended !== undefined)
    return {
      reason: 'ProbeFailing',
      message: `${probe.message}; it is ended and started again`,
      since: probe.since,
    }
  return { reason: 'Crashing', message: joined(state, ended === undefined ? '' : endOf(ended)) }
}

/** Without the message, which the container itself wrote: its last lines are for administrators, and kept nowhere. */
function endOf(ended: Part): string {
  const reason = textAt(ended, ['reason'])
  const named = reason === '' || reason === 'Error' || reason === 'Completed' ? '' : ` (${reason})`
  return `it ended with exit code ${String(ended.exitCode)}${named}`
}

/**
 * A pull alternates between the failure and its back-off, whose message has the failure since Kubernetes 1.32 only; before, the failure is
 * in a warning.
 */
function imageProblem(status: Part, reason: string, message: string, warnings: readonly Warning[]): Problem {
  const bare = oneLine(message).replace(/^Back-off pulling image "[^"]*":? ?/, '')
  const known = /^(ErrImagePull|ErrImageNeverPull|ImageInspectError|RegistryUnavailable): /.exec(bare)?.[1]
  const said =
    reason === 'ImagePullBackOff' && bare === ''
      ? warnings.find(
          (each) =>
            each.container === textAt(status, ['name']) && each.message.startsWith('Failed to pull image "'),
        )?.message
      : bare
  const name = known === undefined && reason === 'ImagePullBackOff' ? 'ErrImagePull' : reason
  const text = (said ?? '').replace(/^Failed to pull image "[^"]*": /, '')
  if (text === '') return { reason: 'ImagePull', message: joined(reason, oneLine(message)) }
  return { reason: 'ImagePull', message: known === undefined ? joined(name, text) : text }
}

type PodProblem = Problem & { readonly container?: string }

function problemOfPod(
  pod: KubernetesObject,
  surroundings: PodSurroundings,
  warnings: readonly Warning[],
): PodProblem | undefined {
  const phase = textAt(pod, ['status', 'phase'])
  if (phase === 'Failed') return failedProblem(pod)
  if (phase === 'Succeeded' || isTrue(conditionOf(pod, 'Ready')?.status ?? '')) return undefined
  const scheduled = conditionOf(pod, 'PodScheduled')
  if (scheduled?.status === 'False') return schedulingProblem(pod, scheduled.message, surroundings)
  const isPlaced = scheduled !== undefined || textAt(pod, ['spec', 'nodeName']) !== ''
  if (!isPlaced && statusesOf(pod).length === 0) return lateClaim(pod, surroundings)
  return warnings.map((each) => warnedProblem(pod, each)).find((each) => each !== undefined)
}

function failedProblem(pod: KubernetesObject): Problem | undefined {
  const [reason, message] = [textAt(pod, ['status', 'reason']), textAt(pod, ['status', 'message'])]
  if (message === '') return undefined
  const isFull = reason.startsWith('OutOf')
  const isForNode = ['Evicted', 'Preempting', 'NodeShutdown', 'Terminated'].includes(reason)
  return { reason: isFull ? 'NoRoom' : isForNode ? 'Evicted' : 'NotReady', message: oneLine(message) }
}

// The node is not ready yet, or not any more.
const ofNode = /node\.kubernetes\.io\/(?:not-ready|network-unavailable|unreachable)|^no nodes available/
const ofClaims =
  /persistentvolumeclaim|persistent volumes to bind|volume node affinity|unbound immediate|storageclass/i
const ofRoom = /Insufficient |Too many pods|free ports/

function schedulingProblem(
  pod: KubernetesObject,
  said: string,
  surroundings: PodSurroundings,
): Problem | undefined {
  if (ofNode.test(said)) return undefined
  const message = `no node takes it: ${oneLine(said) || 'it cannot be scheduled'}`
  if (ofClaims.test(said)) {
    const claim = openClaims(pod, surroundings)[0]
    return { reason: 'ClaimPending', message: claim === undefined ? message : `${claim.text}; ${message}` }
  }
  if (isOfTaint(said)) return taintProblem(pod, message, surroundings)
  return { reason: ofRoom.test(said) ? 'NoRoom' : 'Unschedulable', message }
}

/** Whether the scheduler says that a taint keeps a pod away. Since Kubernetes 1.34 it does not name the taint. */
export const isOfTaint = (said: string): boolean => said.includes('untolerated taint')

// Kubernetes sets them while the node is not ready: that is said of the node, and of each pod it would be said at every start of a cluster.
const taintsOfNode = new Set(
  ['not-ready', 'network-unavailable', 'unreachable'].map((each) => `node.kubernetes.io/${each}`),
)

function taintProblem(
  pod: KubernetesObject,
  message: string,
  { taints }: PodSurroundings,
): Problem | undefined {
  if (taints === undefined) return { reason: 'Taint', message }
  const tolerations = listAt(pod, ['spec', 'tolerations'])
  const kept = taints.filter(
    (taint) => taint.effect !== 'PreferNoSchedule' && !tolerations.some((each) => tolerates(each, taint)),
  )
  const [first] = kept.filter(({ key }) => !taintsOfNode.has(String(key)))
  // Without one, the scheduler has not seen yet that it is gone.
  if (!first) return undefined
  const value = textAt(first, ['value'])
  const name = `${textAt(first, ['key'])}${value === '' ? '' : `=${value}`}:${textAt(first, ['effect'])}`
  return { reason: 'Taint', message: `it does not tolerate the taint ${name} of the node; ${message}` }
}

/** kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration */
function tolerates(toleration: Part, taint: Part): boolean {
  const text = (of: Part, name: string) => textAt(of, [name])
  const isAnyKey = text(toleration, 'key') === '' && toleration.operator === 'Exists'
  const isAnyEffect = text(toleration, 'effect') === ''
  return (
    (isAnyKey || text(toleration, 'key') === text(taint, 'key')) &&
    (isAnyEffect || toleration.effect === taint.effect) &&
    (toleration.operator === 'Exists' || text(toleration, 'value') === text(taint, 'value'))
  )
}

// A volume that is made when its first pod comes takes some seconds.
const claimPatienceMs = 20_000

/** A pod for which a volume is being made has no condition; a failure is a warning about its claim. */
function lateClaim(pod: KubernetesObject, surroundings: PodSurroundings): Problem | undefined {
  const [claim] = openClaims(pod, surroundings)
  if (!claim) return undefined
  const age = surroundings.now - Date.parse(pod.metadata.creationTimestamp ?? '')
  const isLate = claim.hasFailed || age >= claimPatienceMs
  return isLate
    ? { reason: 'ClaimPending', message: claim.text, since: pod.metadata.creationTimestamp ?? '' }
    : undefined
}

/** Claims of a pod that are not bound, with the reason; empty where claims were not read. */
function openClaims(
  pod: KubernetesObject,
  { claims, claimEvents = [] }: PodSurroundings,
): readonly { readonly text: string; readonly hasFailed: boolean }[] {
  if (claims === undefined) return []
  return claimsOf(pod).flatMap((name) => {
    const claim = claims.get(name)
    if (!claim) return [{ text: `the PersistentVolumeClaim ${name} is missing`, hasFailed: true }]
    if (textAt(claim, ['status', 'phase']) === 'Bound') return []
    const [last] = claimEvents
      .filter((each) => each.name === name)
      .toSorted((one, other) => other.at.localeCompare(one.at))
    const text = `the PersistentVolumeClaim ${name} is not bound to a volume`
    return [{ text: joined(text, last?.message ?? ''), hasFailed: last?.reason === 'ProvisioningFailed' }]
  })
}

/** Names of the claims of a pod, also of the ephemeral ones, which are named after it. */
export const claimsOf = (pod: KubernetesObject): readonly string[] =>
  listAt(pod, ['spec', 'volumes']).flatMap((volume) => {
    const claim = textAt(volume, ['persistentVolumeClaim', 'claimName'])
    if (claim !== '') return [claim]
    return isRecord(volume.ephemeral) ? [`${pod.metadata.name}-${String(volume.name)}`] : []
  })

const isProbe = ({ reason }: Warning) => reason === 'Unhealthy' || reason === 'ProbeWarning'
const ofVolumes = new Set(['FailedMount', 'FailedAttachVolume', 'FailedMapVolume'])
const ofSandbox = new Set(['FailedCreatePodSandBox', 'FailedPodSandBoxStatus', 'NetworkNotReady'])
// Said otherwise, or no reason why a pod is not ready.
const ofOthers = new Set([
  ...['Failed', 'BackOff', 'FailedScheduling', 'DNSConfigForming', 'FailedToRetrieveImagePullSecret'],
  ...['FailedKillPod', 'ExceededGracePeriod', 'FailedPreStopHook', 'Preempted', 'TaintManagerEviction'],
])
// The kubelet has not read the object yet, at its own start or the start of the pod; it tries again at once.
const passing = /not registered|failed to sync (?:configmap|secret) cache/

function warnedProblem(pod: KubernetesObject, warning: Warning): PodProblem | undefined {
  const { reason, message, container, since } = warning
  const statuses = statusesOf(pod).map(({ status }) => status)
  const own = statuses.find((each) => textAt(each, ['name']) === container)
  const startOf = (status: Part | undefined) => textAt(status, ['state', 'running', 'startedAt'])
  if (isProbe(warning)) {
    // One of a former start of the container says nothing of this one, unless the probe has ended that one.
    const begun = message.startsWith('Readiness')
      ? startOf(own)
      : textAt(own, ['lastState', 'terminated', 'startedAt']) || startOf(own)
    return own?.ready === true || warning.at < begun
      ? undefined
      : { reason: 'ProbeFailing', message, since, ...(container === '' ? {} : { container }) }
  }
  if (ofOthers.has(reason) || passing.test(message)) return undefined
  const hasStarted = statuses.some((each) => startOf(each) !== '')
  if (ofVolumes.has(reason)) return hasStarted ? undefined : { reason: 'VolumeMount', message, since }
  if (ofSandbox.has(reason)) return hasStarted ? undefined : { reason: 'Sandbox', message, since }
  const begun = statuses.map(startOf).sort().at(-1) ?? ''
  if (warning.at < begun) return undefined
  return { reason: 'NotReady', message, since, ...(container === '' ? {} : { container }) }
}

/** The workload that a pod belongs to, by its controller: a ReplicaSet is named after its Deployment and the hash of the template. */
export function workloadOf({
  metadata,
}: KubernetesObject):
  { readonly kind: string; readonly name: string; readonly apiVersion: string } | undefined {
  const owner = listAt(metadata, ['ownerReferences']).find(({ controller }) => controller === true)
  if (!owner) return undefined
  const [kind, name] = [textAt(owner, ['kind']), textAt(owner, ['name'])]
  const apiVersion = textAt(owner, ['apiVersion'])
  const hash = metadata.labels?.['pod-template-hash']
  return kind === 'ReplicaSet' && hash !== undefined && name.endsWith(`-${hash}`)
    ? { kind: 'Deployment', name: name.slice(0, -hash.length - 1), apiVersion }
    : { kind, name, apiVersion }
}

/**
 * Why the pods of a workload are not made: its own condition, or a warning of its controller while pods are missing.
 * @param warnings of its namespace
 */
export function troubleOfWorkload(
  workload: KubernetesObject,
  warnings: readonly Warning[],
): Trouble | undefined {
  const { kind, metadata } = workload
  const failure = conditionOf(workload, 'ReplicaFailure')
  const isRefused = failure !== undefined && isTrue(failure.status)
  const warning = warnings
    .filter((each) => each.reason.startsWith('FailedCreate') && isAbout(each, workload))
    .toSorted((one, other) => other.at.localeCompare(one.at))
    .find(() => lacksPods(workload))
  const message = isRefused ? failure.message : warning?.message
  if (message === undefined) return undefined
  const since = isRefused
    ? textAt(
        listAt(workload, ['status', 'conditions']).find(({ type }) => type === 'ReplicaFailure'),
        ['lastTransitionTime'],
      )
    : (warning?.since ?? '')
  return {
    reason: 'PodsNotMade',
    message: `its pods cannot be made: ${oneLine(message)}`,
    namespace: metadata.namespace ?? '',
    pod: metadata.name,
    workload: `${kind}/${metadata.name}`,
    ...(since === '' ? {} : { sinceTimestamp: since }),
  }
}

/** Whether a warning is about a workload, or about the ReplicaSet of a Deployment. */
export const isAbout = (
  warning: Pick<Warning, 'kind' | 'name'>,
  { kind, metadata: { name } }: Pick<KubernetesObject, 'kind' | 'metadata'>,
): boolean =>
  (warning.kind === kind && warning.name === name) ||
  (kind === 'Deployment' && warning.kind === 'ReplicaSet' && warning.name.replace(/-[^-]+$/, '') === name)

function lacksPods(workload: KubernetesObject): boolean {
  const status = (name: string) => numberAt(workload, ['status', name]) ?? 0
  if (workload.kind === 'DaemonSet')
    return status('currentNumberScheduled') < status('desiredNumberScheduled')
  if (workload.kind === 'Job') return status('active') + status('succeeded') + status('failed') === 0
  return status('replicas') < (numberAt(workload, ['spec', 'replicas']) ?? 1)
}

const oneLine = (text: string) => text.trim().replace(/\s*\n\s*/g, '; ')
const joined = (...texts: readonly string[]) =>
  texts
    .map(oneLine)
    .filter((each) => each !== '')
    .join(': ')
