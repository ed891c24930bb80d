import type { KubernetesObject } from './client.ts'
import { conditionOf, conditionsOf, isTrue, listAt, numberAt, textAt } from './fields.ts'
import { groupKindOf } from './paths.ts'

/** Status of an object. */
export interface Readiness {
  /**
   * `Current`: it is as desired. `InProgress`: its controller works at it. `Failed`: its controller has given up, or it does not run.
   * `Terminating`: it is being deleted.
   */
  readonly status: 'Current' | 'InProgress' | 'Failed' | 'Terminating'
  /** Awaited condition, or the problem; one line. */
  readonly message: string
}

type Rule = (object: KubernetesObject, now: number) => Readiness

const current = (message = ''): Readiness => ({ status: 'Current', message })
const inProgress = (message: string): Readiness => ({ status: 'InProgress', message })
const failed = (message: string): Readiness => ({ status: 'Failed', message })

/** The first count that is too low: actual and desired number, and name of the objects. */
function firstTooFew(counts: readonly (readonly [is: number, wanted: number, what: string])[]) {
  const found = counts.find(([is, desired]) => is < desired)
  return found && inProgress(`${found[0]} of ${found[1]} ${found[2]}`)
}

const counter = (object: KubernetesObject) => ({
  status: (name: string) => numberAt(object, ['status', name]) ?? 0,
  desired: numberAt(object, ['spec', 'replicas']) ?? 1,
})

const tooMany = (is: number, desired: number) =>
  is > desired
    ? inProgress(
        is - desired === 1
          ? '1 pod more than wanted has to end'
          : `${is - desired} pods more than wanted have to end`,
      )
    : undefined

const statefulSet: Rule = (object) => {
  // The operator of the cluster deletes its pods.
  if (textAt(object, ['spec', 'updateStrategy', 'type']) === 'OnDelete') return current()
  const { status, desired } = counter(object)
  const early =
    firstTooFew([
      [status('replicas'), desired, 'pods exist'],
      [status('readyReplicas'), desired, 'pods are ready'],
    ]) ?? tooMany(status('replicas'), desired)
  if (early !== undefined) return early
  const partition = numberAt(object, ['spec', 'updateStrategy', 'rollingUpdate', 'partition'])
  if (partition !== undefined)
    return (
      firstTooFew([[status('updatedReplicas'), desired - partition, 'pods are of the new version']]) ??
      current()
    )
  const late = firstTooFew([[status('currentReplicas'), desired, 'pods are of the current version']])
  if (late !== undefined) return late
  const revision = (name: string) => textAt(object, ['status', name])
  return revision('currentRevision') === revision('updateRevision')
    ? current()
    : inProgress('its pods are being replaced by those of the new version')
}

// Stored where the controller has no deadline; it then sets no condition either.
const noDeadline = 2 ** 31 - 1

const deployment: Rule = (object) => {
  const progressing = conditionOf(object, 'Progressing')
  if (progressing?.reason === 'ProgressDeadlineExceeded')
    return failed(progressing.message || 'its progress deadline is exceeded')
  const { status, desired } = counter(object)
  const early =
    firstTooFew([
      [status('replicas'), desired, 'pods exist'],
      [status('updatedReplicas'), desired, 'pods are of the new version'],
    ]) ??
    tooMany(status('replicas'), desired) ??
    firstTooFew([
      [status('availableReplicas'), status('updatedReplicas'), 'pods are available'],
      [status('readyReplicas'), desired, 'pods are ready'],
    ])
  if (early !== undefined) return early
  const deadline = numberAt(object, ['spec', 'progressDeadlineSeconds']) ?? noDeadline
  const isComplete = progressing?.reason === 'NewReplicaSetAvailable' && isTrue(progressing.status)
  if (deadline !== noDeadline && !isComplete) return inProgress('its new pods are not available yet')
  return isTrue(conditionOf(object, 'Available')?.status ?? '')
    ? current()
    : inProgress('its controller does not report it available yet')
}

const replicaSet: Rule = (object) => {
  const failure = conditionOf(object, 'ReplicaFailure')
  if (failure && isTrue(failure.status)) return inProgress(failure.message || 'its pods cannot be made')
  const { status, desired } = counter(object)
  return (
    firstTooFew([
      [status('fullyLabeledReplicas'), desired, 'pods are labelled'],
      [status('availableReplicas'), desired, 'pods are available'],
      [status('readyReplicas'), desired, 'pods are ready'],
    ]) ??
    tooMany(status('replicas'), desired) ??
    current()
  )
}

const daemonSet: Rule = (object) => {
  const desired = numberAt(object, ['status', 'desiredNumberScheduled'])
  const isSeen = numberAt(object, ['status', 'observedGeneration']) !== undefined
  if (object.metadata.generation === undefined || !isSeen || desired === undefined)
    return inProgress('its controller has not seen it yet')
  const { status } = counter(object)
  return (
    firstTooFew([
      [status('currentNumberScheduled'), desired, 'pods exist'],
      [status('updatedNumberScheduled'), desired, 'pods are of the new version'],
      [status('numberAvailable'), desired, 'pods are available'],
      [status('numberReady'), desired, 'pods are ready'],
    ]) ?? current()
  )
}

const claim: Rule = (object) =>
  textAt(object, ['status', 'phase']) === 'Bound' ? current() : inProgress('it is not bound to a volume')

// The scheduler may not have seen a node yet that has just become ready.
const schedulingMs = 15_000

const pod: Rule = (object, now) => {
  const phase = textAt(object, ['status', 'phase'])
  if (phase === 'Succeeded') return current('it has ended')
  // As kstatus has it: nothing will change any more. What owns the pod reports the failure.
  if (phase === 'Failed') return current('it has ended with a failure')
  if (phase === 'Running') {
    if (isTrue(conditionOf(object, 'Ready')?.status ?? '')) return current()
    const crashing = listAt(object, ['status', 'containerStatuses']).filter(
      (container) => textAt(container, ['state', 'waiting', 'reason']) === 'CrashLoopBackOff',
    )
    if (crashing.length > 0)
      return failed(
        `containers crash again and again: ${crashing.map(({ name }) => String(name)).join(', ')}`,
      )
    return inProgress('it runs, and is not ready yet')
  }
  const scheduled = conditionOf(object, 'PodScheduled')
  const isUnschedulable = scheduled?.status === 'False' && scheduled.reason === 'Unschedulable'
  if (phase !== 'Pending' || !isUnschedulable) return inProgress('it has not started yet')
  const madeAt = Date.parse(object.metadata.creationTimestamp ?? '')
  const message = `no node takes it: ${scheduled.message || 'it cannot be scheduled'}`
  return now - madeAt < schedulingMs ? inProgress(message) : failed(message)
}

/** A job that runs is Current: it may run for days. */
const job: Rule = (object) => {
  for (const { type, status, message } of conditionsOf(object)) {
    if (!isTrue(status)) continue
    if (type === 'Complete') return current('it is complete')
    if (type === 'Failed') return failed(message || 'it has failed')
    if (type === 'Suspended') return current('it is suspended')
  }
  return textAt(object, ['status', 'startTime']) === '' ? inProgress('it has not started yet') : current()
}

const service: Rule = (object) => {
  const isBalanced = textAt(object, ['spec', 'type']) === 'LoadBalancer'
  return isBalanced && textAt(object, ['spec', 'clusterIP']) === ''
    ? inProgress('it has no address yet')
    : current()
}

const customResourceDefinition: Rule = (object) => {
  const names = conditionOf(object, 'NamesAccepted')
  if (names?.status === 'False') return failed(names.message || 'its names are taken')
  const established = conditionOf(object, 'Established')
  if (established && isTrue(established.status)) return current()
  if (established?.status === 'False' && established.reason !== 'Installing')
    return failed(established.message || 'it is not established')
  return inProgress('it is not established yet')
}

/** Rules by `<group>/<kind>`. Kinds without a controller, such as ConfigMap, need none. */
const readinessRules: ReadonlyMap<string, Rule> = new Map([
  ['/PersistentVolumeClaim', claim],
  ['/Pod', pod],
  ['/Service', service],
  ['apiextensions.k8s.io/CustomResourceDefinition', customResourceDefinition],
  ['apps/DaemonSet', daemonSet],
  ['apps/Deployment', deployment],
  ['apps/ReplicaSet', replicaSet],
  ['apps/StatefulSet', statefulSet],
  ['batch/Job', job],
])

/**
 * Status of an object, from the object alone, by the rules of kstatus, which kubectl's successors and GitOps controllers use too:
 * https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus. An object of a kind without a rule is Current when it exists,
 * unless its conditions say something else.
 * @param now milliseconds since 1970
 */
export function readiness(object: KubernetesObject, now: number): Readiness {
  const { deletionTimestamp, generation } = object.metadata
  if (deletionTimestamp !== undefined && deletionTimestamp !== '')
    return { status: 'Terminating', message: 'it is being deleted' }
  const observed = numberAt(object, ['status', 'observedGeneration'])
  if (generation !== undefined && observed !== undefined && observed !== generation)
    return { status: 'InProgress', message: 'its controller has not seen the last change yet' }
  for (const { type, status, message } of conditionsOf(object)) {
    if (type === 'Reconciling' && isTrue(status)) return { status: 'InProgress', message }
    if (type === 'Stalled' && isTrue(status)) return { status: 'Failed', message }
  }
  const rule = readinessRules.get(groupKindOf(object))
  return rule?.(object, now) ?? byReadyCondition(object)
}

/** For kinds without a rule, mostly custom resources. */
function byReadyCondition(object: KubernetesObject): Readiness {
  const ready = conditionOf(object, 'Ready')
  if (ready === undefined || isTrue(ready.status)) return { status: 'Current', message: '' }
  return { status: 'InProgress', message: ready.message || ready.reason || 'it is not ready' }
}
