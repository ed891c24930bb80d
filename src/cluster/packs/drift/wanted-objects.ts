import { join } from 'node:path'
import type { KubernetesObject } from '../../../kubernetes/client.ts'
import { keyOf, prepared, type InventoryEntry } from '../../../kubernetes/inventory.ts'
import { groupKindOf } from '../../../kubernetes/paths.ts'
import type { Wanted, WantedChart, WantedPack } from '../../wanted.ts'
import { labelledNamespaces, namespacesOf } from '../pack-content.ts'
import type { PackRecord } from '../pack-store.ts'
import { readObjects, withNamespaceLabels } from '../read-objects.ts'
import { releaseFiles } from '../release-files.ts'
import type { WatchedKind } from './metadata-watch.ts'

/** An object that is held as it is wanted. */
export interface HeldObject {
  readonly entry: InventoryEntry
  readonly pack: WantedPack
  readonly watched: WatchedKind
}

const ownLabel = 'edgehostd/pack'
// helm gives it to all objects of a release.
const helmLabel = 'app.kubernetes.io/managed-by=Helm'

/** The objects of the packs that are applied and were available, by `keyOf`. Pure. */
export function heldObjects(wanted: Wanted, records: readonly PackRecord[]): ReadonlyMap<string, HeldObject> {
  const held = new Map<string, HeldObject>()
  for (const record of records) {
    const pack = wanted.packs.find(({ id }) => id === record.id)
    const isDone = record.appliedDigest === pack?.digest && record.availableDigest === pack.digest
    if (!pack || !isDone) continue
    const hold = (entry: InventoryEntry, labelSelector: string) => {
      const { apiVersion, kind } = entry
      // Namespaces of packs that no manifest contains have no label.
      const isNamespace = kind === 'Namespace' && apiVersion === 'v1'
      const watched = { apiVersion, kind, labelSelector: isNamespace ? '' : labelSelector }
      held.set(keyOf(entry), { entry, pack, watched })
    }
    for (const { name } of namespacesOf(wanted, pack)) {
      const entry = { apiVersion: 'v1', kind: 'Namespace', name }
      // One that is an object of a manifest is held as that.
      if (!held.has(keyOf(entry))) hold(entry, '')
    }
    for (const entry of record.releases) hold(entry, helmLabel)
    for (const entry of record.inventory) hold(entry, ownLabel)
  }
  return held
}

/**
 * Reads the objects of a pack as they are applied.
 * @returns by the key of an entry; those of a chart that was not written down are missing
 */
export async function readWantedObjects(
  wanted: Wanted,
  pack: WantedPack,
): Promise<(entry: InventoryEntry) => KubernetesObject | undefined> {
  const { folder } = wanted
  const [namespaces, labels] = [namespacesOf(wanted, pack), labelledNamespaces(wanted)]
  const known = new Map<string, KubernetesObject>()
  // Whether a kind has namespaces is known from the entry that is asked for.
  const keep = (object: KubernetesObject, namespace: string) => {
    const about = `${groupKindOf(object)}/${object.metadata.name}`
    known.set(`${about}/${object.metadata.namespace || namespace}`, object)
    known.set(`${about}/`, object)
  }
  for (const { name, labels, annotations } of namespaces)
    keep({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels, annotations } }, '')
  for (const chart of pack.charts)
    for (const object of await readObjects(releaseFiles(folder, chart).wanted).catch(() => []))
      keep(ofRelease(object, chart), chart.namespace)
  for (const { file, namespace } of pack.manifests)
    for (const object of await readObjects(join(folder, file)))
      keep(prepared(withNamespaceLabels(object, labels), undefined, pack.id), namespace)
  return (entry) => {
    const found = known.get(`${groupKindOf(entry)}/${entry.name}/${entry.namespace ?? ''}`)
    if (!found) return undefined
    const { namespace } = entry
    return namespace === undefined ? found : { ...found, metadata: { ...found.metadata, namespace } }
  }
}

/** An object of a chart with what helm adds to it: without that, helm would not take it for its own. */
function ofRelease(object: KubernetesObject, { release, namespace }: WantedChart): KubernetesObject {
  const { labels, annotations } = object.metadata
  return {
    ...object,
    status: undefined,
    metadata: {
      ...object.metadata,
      labels: { ...labels, 'app.kubernetes.io/managed-by': 'Helm' },
      annotations: {
        ...annotations,
        'meta.helm.sh/release-name': release,
        'meta.helm.sh/release-namespace': namespace,
      },
    },
  }
}
