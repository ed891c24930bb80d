import type { KubernetesClient, KubernetesObject, WatchedObjects } from '../../kubernetes/client.ts'
import { nameOf, type InventoryEntry } from '../../kubernetes/inventory.ts'
import { readiness } from '../../kubernetes/readiness.ts'

/** Watches the workloads of the packs of a running cluster. */
export interface WorkloadWatch {
  /** Says which objects are watched; those of other kinds than workloads are left out. */
  watch(entries: readonly InventoryEntry[], signal: AbortSignal): Promise<void>
  /** What is wrong with an object; undefined if nothing is, or nothing is known yet. */
  troubleOf(entry: InventoryEntry): string | undefined
  stop(): void
}

export interface WorkloadWatchOptions {
  readonly client: KubernetesClient
  /** A workload went down or came up again. */
  readonly onChange: () => void
}

const workloads = new Set([
  ...['apps/v1 Deployment', 'apps/v1 StatefulSet', 'apps/v1 DaemonSet', 'apps/v1 ReplicaSet'],
  ...['v1 Pod', 'batch/v1 Job'],
])
const isWorkload = ({ apiVersion, kind }: InventoryEntry) => workloads.has(`${apiVersion} ${kind}`)

/** One watch for each kind, over all namespaces: each costs a connection, and at rest a request in ten minutes. */
export function createWorkloadWatch({ client, onChange }: WorkloadWatchOptions): WorkloadWatch {
  let ended = new AbortController()
  const watched = new Map<string, WatchedObjects>()
  let wanted: readonly InventoryEntry[] = []
  let told = ''

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
    const troubles = wanted.map(troubleOf).join('\n')
    if (troubles !== told) onChange()
    told = troubles
  }

  return {
    async watch(entries, signal) {
      wanted = entries.filter(isWorkload)
      for (const { apiVersion, kind } of wanted) {
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
      wanted = []
      told = ''
    },
  }
}

/** What readiness is made from: a hundred workloads with all their fields would be a megabyte. */
function keepReadiness({ apiVersion, kind, metadata, spec, status }: KubernetesObject): KubernetesObject {
  const { name, namespace, generation, deletionTimestamp, creationTimestamp } = metadata
  const { replicas, updateStrategy, progressDeadlineSeconds } = (spec ?? {}) as Record<string, unknown>
  return {
    ...{ apiVersion, kind, status },
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
