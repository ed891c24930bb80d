import { setTimeout as delay } from 'node:timers/promises'
import { keyOf, type InventoryEntry, nameOf } from '../../kubernetes/inventory.ts'
import { StepFailed, type CallContext } from '../loop/step.ts'
import { observeObject } from './objects.ts'
import type { ObjectClient } from './read-troubles.ts'
import { fieldAt, listAt, textAt } from '../../kubernetes/fields.ts'
import type { KubernetesClient, KubernetesObject, WatchedObjects } from '../../kubernetes/client.ts'
import { readiness } from '../../kubernetes/readiness.ts'

export interface AvailabilityOptions {
  readonly client: ObjectClient
  /** Time for which a controller may have given up an object; it often does for a moment. */
  readonly patienceMs?: number
  readonly pauseMs?: number
}

// Kinds whose objects are ready when they exist. A Service of type LoadBalancer is not waited for: on many hosts nothing gives it an
// address, and its workload is available all the same.
const plain = new Set([
  ...['ConfigMap', 'Secret', 'ServiceAccount', 'Service', 'Endpoints', 'EndpointSlice', 'Namespace'],
  ...['Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding', 'NetworkPolicy', 'Ingress', 'IngressClass'],
  ...['StorageClass', 'PriorityClass', 'RuntimeClass', 'CSIDriver', 'LimitRange', 'ResourceQuota'],
  ...['PodDisruptionBudget', 'HorizontalPodAutoscaler', 'CronJob', 'PersistentVolumeClaim'],
  ...['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration', 'CustomResourceDefinition'],
])

/** Whether an object may become ready later than it exists. */
export const hasReadiness = ({ kind }: InventoryEntry): boolean => !plain.has(kind)

/**
 * Waits until all objects are ready, by the rules of kstatus.
 * @throws StepFailed with the first object whose controller has given up
 */
export async function waitUntilAvailable(
  { client, patienceMs = 60_000, pauseMs = 1_000 }: AvailabilityOptions,
  entries: readonly InventoryEntry[],
  { signal, onLine }: CallContext,
): Promise<void> {
  const failedSince = new Map<string, number>()
  const all = entries.filter(hasReadiness)
  let pending = all
  let reported = ''
  for (let pause = pauseMs; ; pause = Math.min(pause * 1.5, 5 * pauseMs)) {
    const late: InventoryEntry[] = []
    let first = ''
    for (const entry of pending) {
      // Only the first one is reported with its reason.
      const { status, message } = await observeObject(client, entry, signal, first === '')
      if (status === 'Current') continue
      late.push(entry)
      first ||= message
      if (status === 'Failed') {
        const since = failedSince.get(keyOf(entry)) ?? performance.now()
        failedSince.set(keyOf(entry), since)
        if (performance.now() - since >= patienceMs) throw new StepFailed(message)
      } else failedSince.delete(keyOf(entry))
    }
    if (late.length === 0) {
      if (pending.length === all.length) return
      // Those that were ready before may have gone down again.
      pending = all
      continue
    }
    if (pending.length > late.length) pause = pauseMs
    pending = late
    const line = `waits for ${late.length === 1 ? '' : `${late.length} objects, first `}${first}`
    if (line !== reported) onLine((reported = line))
    await delay(pause, undefined, { signal })
  }
}

// The API server names the webhook, which is not the name of an object, and not always the service.
const refusal = /(?:failed calling webhook|admission webhook) "([^"]+)"/

const configurations = ['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration']

/**
 * Configuration and service of a webhook that has refused or not answered a change.
 * @param message of the API server, also as helm repeats it
 * @returns the end of a sentence, which begins with `; `; empty for other messages, and if nothing can be found out
 */
export async function webhookIn(
  client: KubernetesClient,
  message: string,
  signal: AbortSignal,
): Promise<string> {
  const webhook = refusal.exec(message)?.[1]
  if (webhook === undefined) return ''
  try {
    for (const kind of configurations) {
      const resource = await client.resourceOf('admissionregistration.k8s.io/v1', kind, signal)
      for (const object of resource ? await client.list(resource, { signal }) : []) {
        const found = listAt(object, ['webhooks']).find(({ name }) => name === webhook)
        if (found) return `; this webhook is of the ${kind} ${object.metadata.name}, ${targetOf(found)}`
      }
    }
  } catch {
    // The message of the API server is said anyway.
  }
  return ''
}

function targetOf(webhook: Readonly<Record<string, unknown>>): string {
  const service = fieldAt(webhook, ['clientConfig', 'service'])
  const [namespace, name] = [textAt(service, ['namespace']), textAt(service, ['name'])]
  if (name === '') return `which asks ${textAt(webhook, ['clientConfig', 'url'])}`
  return `which asks the Service ${namespace}/${name}: kubectl --namespace ${namespace} get endpointslices,pods shows whether its pods run`
}

/** Watches the workloads of the packs of a running cluster. */
interface WorkloadWatch {
  /** Sets the watched objects; kinds other than workloads are left out. */
  watch(entries: readonly InventoryEntry[], signal: AbortSignal): Promise<void>
  /** Problem of an object; undefined if there is none, or none is known yet. */
  troubleOf(entry: InventoryEntry): string | undefined
  stop(): void
}

interface WorkloadWatchOptions {
  readonly client: KubernetesClient
  /** A workload went down or came up again. */
  readonly onChange: () => void
}

const watchedWorkloads = new Set([
  ...['apps/v1 Deployment', 'apps/v1 StatefulSet', 'apps/v1 DaemonSet', 'apps/v1 ReplicaSet'],
  ...['v1 Pod', 'batch/v1 Job'],
])
const isWorkload = ({ apiVersion, kind }: InventoryEntry) => watchedWorkloads.has(`${apiVersion} ${kind}`)

/** One watch for each kind, over all namespaces: each costs a connection, and at rest a request in ten minutes. */
export function createWorkloadWatch({ client, onChange }: WorkloadWatchOptions): WorkloadWatch {
  let ended = new AbortController()
  const watched = new Map<string, WatchedObjects>()
  let desired: readonly InventoryEntry[] = []
  let reported = ''

  function troubleOf(entry: InventoryEntry): string | undefined {
    const objects = isWorkload(entry) ? watched.get(entry.kind)?.current() : undefined
    if (!objects) return undefined
    // All are of its kind. No key of each is made, since this is asked for each workload at each change.
    const { name, namespace } = entry
    const found = objects.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace)
    // A Job may be set to be removed when it has ended.
    if (!found) return entry.kind === 'Job' ? undefined : `${nameOf(entry)} is missing`
    const { status, message } = readiness(found, Date.now())
    return status === 'Current' ? undefined : `${nameOf(entry)}: ${message}`
  }
  function changed(): void {
    const troubles = desired.map(troubleOf).join('\n')
    if (troubles !== reported) onChange()
    reported = troubles
  }

  return {
    async watch(entries, signal) {
      desired = entries.filter(isWorkload)
      for (const { apiVersion, kind } of desired) {
        if (watched.has(kind)) continue
        const { signal: end } = ended
        const resource = await client.resourceOf(apiVersion, kind, signal)
        if (!resource || end.aborted || watched.has(kind)) continue
        watched.set(kind, client.watch(resource, { pick: keepReadiness, onChange: changed, signal: end }))
      }
    },
    troubleOf,
    stop() {
      ended.abort()
      ended = new AbortController()
      watched.clear()
      desired = []
      reported = ''
    },
  }
}

/** Fields that readiness needs: a hundred workloads with all their fields would be a megabyte. */
function keepReadiness({ apiVersion, kind, metadata, spec, status }: KubernetesObject): KubernetesObject {
  const { name, namespace, generation, deletionTimestamp, creationTimestamp } = metadata
  const { replicas, updateStrategy, progressDeadlineSeconds } = (spec ?? {}) as Record<string, unknown>
  return {
    apiVersion,
    kind,
    status,
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(generation === undefined ? {} : { generation }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
    },
    spec: { replicas, updateStrategy, progressDeadlineSeconds },
  }
}
