import { groupKindOf } from '../../kubernetes/paths.ts'
import type { InventoryEntry } from '../../kubernetes/inventory.ts'
import type { ManifestFile } from './pack-content.ts'
import { readObjects } from './read-objects.ts'

/**
 * Whether an object is among manifests. The manifests are read when it is asked first.
 * @param files of the packs that are wanted
 */
export function wantedElsewhere(files: readonly ManifestFile[]): (entry: InventoryEntry) => Promise<boolean> {
  let known: Promise<ReadonlySet<string>> | undefined
  async function read(): Promise<ReadonlySet<string>> {
    const keys = new Set<string>()
    for (const { file, namespace } of files)
      for (const { apiVersion, kind, metadata } of await readObjects(file)) {
        const about = `${groupKindOf({ apiVersion, kind })}/${metadata.name}`
        keys.add(`${about}/${metadata.namespace || namespace}`)
        // Whether the kind has namespaces is not known here.
        keys.add(`${about}/`)
      }
    return keys
  }
  return async (entry) =>
    (await (known ??= read())).has(`${groupKindOf(entry)}/${entry.name}/${entry.namespace ?? ''}`)
}
