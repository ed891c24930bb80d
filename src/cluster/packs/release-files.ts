import { dirname, join } from 'node:path'

/**
 * The files that the action `helm` writes about a release. They are beside the generations, since a chart that does not change is not
 * installed again by a later one.
 * @param folder `Wanted.folder`
 */
export function releaseFiles(
  folder: string,
  { namespace, release }: { readonly namespace: string; readonly release: string },
) {
  const file = join(dirname(folder), 'releases', `${namespace}.${release}`)
  return {
    /** The objects that are in the cluster: `InventoryEntry[]` as JSON. */
    objects: `${file}.json`,
    /** The objects as the chart wants them, with secrets: JSON, one object a line. */
    wanted: `${file}.jsonl`,
  }
}
