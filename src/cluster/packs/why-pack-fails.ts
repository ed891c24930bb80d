import { KubernetesError, type KubernetesObject } from '../../kubernetes/client.ts'
import { entryOf, keyOf, type InventoryEntry } from '../../kubernetes/inventory.ts'
import { hasReadiness } from './availability.ts'
import { whyPodsFail, type ObjectClient } from './look-at-object.ts'
import type { PackRecord } from './pack-store.ts'

const workloads = [
  ...[
    ['apps/v1', 'Deployment'],
    ['apps/v1', 'StatefulSet'],
    ['apps/v1', 'DaemonSet'],
  ],
  ...[['batch/v1', 'Job']],
] as const

/**
 * Why pods of a pack do not run, with the pod and the container: of the objects of its manifests, and of the workloads of its releases, also
 * of one that helm still waits for, whose objects are not written down yet.
 * @returns empty where there is nothing to say, also where the API server does not answer
 */
export async function whyPackFails(
  client: ObjectClient,
  { inventory, releases, charts }: Pick<PackRecord, 'inventory' | 'releases' | 'charts'>,
  signal: AbortSignal,
): Promise<string> {
  const ofReleases = charts.length === 0 ? [] : await workloadsOf(client, new Set(charts), signal)
  const entries = new Map(
    [...inventory, ...releases, ...ofReleases].filter(hasReadiness).map((entry) => [keyOf(entry), entry]),
  )
  for (const entry of entries.values()) {
    const why = await whyPodsFail(client, entry, signal)
    if (why !== '') return why
  }
  return ''
}

/** The workloads of releases, which helm marks. @param releases as `namespace/name` */
async function workloadsOf(
  client: ObjectClient,
  releases: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<readonly InventoryEntry[]> {
  const isOfThem = ({ metadata: { annotations = {} } }: KubernetesObject) =>
    releases.has(
      `${annotations['meta.helm.sh/release-namespace']}/${annotations['meta.helm.sh/release-name']}`,
    )
  const found: InventoryEntry[] = []
  try {
    for (const [apiVersion, kind] of workloads) {
      const resource = await client.resourceOf(apiVersion, kind, signal)
      const labelSelector = 'app.kubernetes.io/managed-by=Helm'
      const objects =
        resource && (await client.list(resource, { labelSelector, isMetadataOnly: true, signal }))
      for (const object of objects ?? [])
        if (isOfThem(object)) found.push(entryOf({ ...object, apiVersion, kind }))
    }
  } catch (error) {
    if (!(error instanceof KubernetesError)) throw error
  }
  return found
}
