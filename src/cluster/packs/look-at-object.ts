import { conditionOf, fieldAt, isTrue, listAt, textAt } from '../../kubernetes/fields.ts'
import { KubernetesError, type KubernetesClient, type KubernetesObject } from '../../kubernetes/client.ts'
import { nameOf, type InventoryEntry } from '../../kubernetes/inventory.ts'
import { isRecord } from '../../base/json.ts'
import { readiness } from '../../kubernetes/readiness.ts'
import type { Readiness } from '../../kubernetes/readiness-rules.ts'

/** What looks at objects ask of the API server. */
export type ObjectClient = Pick<KubernetesClient, 'resourceOf' | 'get' | 'list'>

/**
 * Looks at one object of a pack.
 * @param isReasonWanted whether its pods are asked for too, where its controller has not given it up
 * @returns its readiness; the message begins with its name, and says why its pods do not run
 */
export async function lookAtObject(
  client: ObjectClient,
  entry: InventoryEntry,
  signal: AbortSignal,
  isReasonWanted = true,
): Promise<Readiness> {
  const name = nameOf(entry)
  try {
    const resource = await client.resourceOf(entry.apiVersion, entry.kind, signal)
    const object = resource && (await client.get(resource, entry, signal))
    // A Job may be set to be removed when it has ended.
    if (!object && entry.kind === 'Job') return { status: 'Current', message: '' }
    if (!object) return { status: 'InProgress', message: `${name} is missing` }
    const { status, message } = readiness(object, Date.now())
    if (status === 'Current') return { status, message: '' }
    const trouble = isReasonWanted || status === 'Failed' ? await podTrouble(client, object, signal) : ''
    return { status, message: `${name}: ${message}${trouble === '' ? '' : `; ${trouble}`}` }
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof KubernetesError)) throw error
    return { status: 'InProgress', message: `${name}: ${error.message}` }
  }
}

/** Why the pods of an object do not run; empty where there is nothing to say, and where the API server does not. */
export async function whyPodsFail(
  client: ObjectClient,
  entry: InventoryEntry,
  signal: AbortSignal,
): Promise<string> {
  try {
    const resource = await client.resourceOf(entry.apiVersion, entry.kind, signal)
    const object = resource && (await client.get(resource, entry, signal))
    return object ? await podTrouble(client, object, signal) : ''
  } catch (error) {
    if (error instanceof KubernetesError) return ''
    throw error
  }
}

/** Why the first pod of a workload that does not run does not; empty where there is nothing to say. */
async function podTrouble(
  client: ObjectClient,
  workload: KubernetesObject,
  signal: AbortSignal,
): Promise<string> {
  const failure = conditionOf(workload, 'ReplicaFailure')
  if (failure && isTrue(failure.status)) return `its pods cannot be made: ${failure.message}`
  const pods = await podsOf(client, workload, signal)
  if (!pods) return ''
  const trouble = pods.map(troubleOfPod).find((each) => each !== '')
  if (trouble !== undefined) return trouble
  const late = pods.find((pod) => !isTrue(conditionOf(pod, 'Ready')?.status ?? ''))
  if (late) return withPlace(late, await lastWarning(client, late, signal))
  return pods.length === 0 ? ((await lastWarning(client, workload, signal))?.message ?? '') : ''
}

/** The pods of a workload, newest first: older ones may be of a former version. Or the pod itself; undefined for what has none. */
async function podsOf(
  client: ObjectClient,
  workload: KubernetesObject,
  signal: AbortSignal,
): Promise<readonly KubernetesObject[] | undefined> {
  if (workload.kind === 'Pod') return [workload]
  const labels = fieldAt(workload, ['spec', 'selector', 'matchLabels'])
  const { namespace } = workload.metadata
  if (!isRecord(labels) || namespace === undefined || Object.keys(labels).length === 0) return undefined
  const resource = await client.resourceOf('v1', 'Pod', signal)
  const labelSelector = Object.entries(labels)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(',')
  const pods = resource && (await client.list(resource, { namespace, labelSelector, signal }))
  return pods?.toSorted((one, other) => madeAt(other).localeCompare(madeAt(one)))
}

const madeAt = ({ metadata }: KubernetesObject) => metadata.creationTimestamp ?? ''

interface Warning {
  readonly message: string
  /** Of a container of the pod. */
  readonly container: string
  readonly at: string
}

/** What Kubernetes has told last of an object that is not as it shall be, as a probe that fails, or a volume that is missing. */
async function lastWarning(
  client: ObjectClient,
  { kind, metadata: { name, namespace } }: KubernetesObject,
  signal: AbortSignal,
): Promise<Warning | undefined> {
  const resource = await client.resourceOf('v1', 'Event', signal)
  if (!resource || namespace === undefined) return undefined
  const fieldSelector = `involvedObject.kind=${kind},involvedObject.name=${name},type=Warning`
  const found = await client.list(resource, { namespace, fieldSelector, signal })
  return found
    .map((event) => ({
      message: textAt(event, ['message']).trim(),
      container: /\{(.+)\}/.exec(textAt(event, ['involvedObject', 'fieldPath']))?.[1] ?? '',
      at:
        textAt(event, ['lastTimestamp']) ||
        textAt(event, ['eventTime']) ||
        (event.metadata.creationTimestamp ?? ''),
    }))
    .sort((one, other) => one.at.localeCompare(other.at))
    .at(-1)
}

const withPlace = ({ metadata: { name } }: KubernetesObject, warning: Warning | undefined) =>
  warning === undefined
    ? ''
    : `pod ${name}: ${warning.container === '' ? '' : `container ${warning.container}: `}${warning.message}`

// States of a container that is on its way.
const usual = new Set(['ContainerCreating', 'PodInitializing'])

/** Why a pod does not run: what its containers wait for or ended with, or why no node takes it; empty if it runs. Pure. */
export function troubleOfPod(pod: KubernetesObject): string {
  const containers = ['initContainerStatuses', 'containerStatuses'].flatMap((list) =>
    listAt(pod, ['status', list]),
  )
  for (const container of containers) {
    const at = `pod ${pod.metadata.name}: container ${textAt(container, ['name'])}: `
    const over = fieldAt(container, ['state', 'terminated'])
    if (isRecord(over) && over.exitCode !== 0) return at + endOf(over)
    const waiting = fieldAt(container, ['state', 'waiting'])
    const reason = textAt(waiting, ['reason'])
    if (!isRecord(waiting) || usual.has(reason)) continue
    // The reason of a container that crashes says only that it does.
    const ended = fieldAt(container, ['lastState', 'terminated'])
    const why = [reason, textAt(waiting, ['message']), isRecord(ended) && endOf(ended)].filter(Boolean)
    return at + why.join(': ')
  }
  const scheduled = conditionOf(pod, 'PodScheduled')
  if (scheduled?.status === 'False') return `pod ${pod.metadata.name}: no node takes it: ${scheduled.message}`
  const reason = textAt(pod, ['status', 'message'])
  return textAt(pod, ['status', 'phase']) === 'Failed' && reason !== ''
    ? `pod ${pod.metadata.name}: ${reason}`
    : ''
}

function endOf(ended: Readonly<Record<string, unknown>>): string {
  const message = textAt(ended, ['message'])
  return `it ended with exit code ${String(ended.exitCode)}${message === '' ? '' : `: ${message.trim()}`}`
}
