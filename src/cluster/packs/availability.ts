import { setTimeout as delay } from 'node:timers/promises'
import { keyOf, type InventoryEntry } from '../../kubernetes/inventory.ts'
import { StepFailed, type CallContext } from '../step.ts'
import { lookAtObject, type ObjectClient } from './look-at-object.ts'

export interface AvailabilityOptions {
  readonly client: ObjectClient
  /** How long an object may be one that its controller has given up; it often is for a moment. */
  readonly patienceMs?: number
  readonly pauseMs?: number
}

// Kinds whose objects are as they shall be when they exist. A Service of type LoadBalancer is not waited for: on many hosts nothing
// gives it an address, and its workload is available all the same.
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
  let told = ''
  for (let pause = pauseMs; ; pause = Math.min(pause * 1.5, 5 * pauseMs)) {
    const late: InventoryEntry[] = []
    let first = ''
    for (const entry of pending) {
      // Only the first one is told with its reason.
      const { status, message } = await lookAtObject(client, entry, signal, first === '')
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
    if (line !== told) onLine((told = line))
    await delay(pause, undefined, { signal })
  }
}
