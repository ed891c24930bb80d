import { fieldAt, listAt, textAt } from '../../kubernetes/fields.ts'
import { KubernetesError, type KubernetesClient, type KubernetesObject } from '../../kubernetes/client.ts'
import { nameOf, entryOf, type InventoryEntry } from '../../kubernetes/inventory.ts'
import { isRecord } from '../../base/json.ts'
import { workOff } from '../../kubernetes/work-off.ts'
import type { CallContext } from '../loop/step.ts'
import type { DesiredDrain } from '../desired/desired-state.ts'

/** Calls of a drain to the API server. */
export type DrainClient = Pick<KubernetesClient, 'resourceOf' | 'get' | 'list' | 'evict' | 'remove'>

export interface DrainOptions {
  readonly client: DrainClient
  /** Wait for pods, since the last one that went. */
  readonly patienceMs?: number
}

// As `kubectl drain --ignore-daemonsets`: pods of a DaemonSet would be back at once.
const drained = new Set(['apps/v1 Deployment', 'apps/v1 StatefulSet', 'apps/v1 ReplicaSet'])

/**
 * Evicts the pods of workloads, and waits until they are gone. A PodDisruptionBudget that does not allow an eviction is waited for.
 * @throws ApplyFailed which pod stays, and why; any error after the signal
 */
export async function drainPods(
  { client, patienceMs = 300_000 }: DrainOptions,
  workloads: readonly InventoryEntry[],
  { podSelector, isEvictionDisabled }: DesiredDrain,
  { signal, onLine }: CallContext,
): Promise<void> {
  const pods = await client.resourceOf('v1', 'Pod', signal)
  if (!pods) return
  const found = new Map<string, KubernetesObject>()
  for (const entry of workloads) {
    if (!drained.has(`${entry.apiVersion} ${entry.kind}`)) continue
    const resource = await client.resourceOf(entry.apiVersion, entry.kind, signal)
    const workload = resource && (await client.get(resource, entry, signal))
    const selector = workload && selectorOf(workload)
    if (!selector || entry.namespace === undefined) continue
    const labelSelector = [selector, podSelector].filter((each) => each !== '').join(',')
    for (const pod of await client.list(pods, { namespace: entry.namespace, labelSelector, signal }))
      found.set(pod.metadata.uid ?? pod.metadata.name, pod)
  }
  const asked = new Set<KubernetesObject>()
  async function work(pod: KubernetesObject): Promise<void> {
    if (!pods) return
    const { name, namespace = '', uid } = pod.metadata
    const reference = { name, namespace }
    const left = await client.get(pods, reference, signal)
    if (left?.metadata.uid !== uid) return
    if (left?.metadata.deletionTimestamp === undefined && !asked.has(pod)) {
      if (isEvictionDisabled) await client.remove(pods, reference, signal)
      else await client.evict(reference, signal)
      asked.add(pod)
    }
    throw new KubernetesError(409, 'Conflict', 'it has not ended yet')
  }
  await workOff({
    items: [...found.values()],
    work,
    onLine,
    signal,
    patienceMs,
    firstPauseMs: 500,
    nameOf: (pod) => nameOf(entryOf(pod)),
  })
  onLine(`${found.size} pod${found.size === 1 ? '' : 's'} evicted`)
}

/** The selector of the pods of a workload, as a parameter of a list; undefined where it has none. */
export function selectorOf(workload: KubernetesObject): string | undefined {
  const labels = fieldAt(workload, ['spec', 'selector', 'matchLabels'])
  const terms = isRecord(labels)
    ? Object.entries(labels).map(([key, value]) => `${key}=${String(value)}`)
    : []
  for (const term of listAt(workload, ['spec', 'selector', 'matchExpressions'])) {
    const [key, operator] = [textAt(term, ['key']), textAt(term, ['operator'])]
    const values = Array.isArray(term.values) ? term.values.map(String).join(',') : ''
    if (operator === 'In' || operator === 'NotIn') terms.push(`${key} ${operator.toLowerCase()} (${values})`)
    else terms.push(operator === 'DoesNotExist' ? `!${key}` : key)
  }
  return terms.length === 0 ? undefined : terms.join(',')
}
