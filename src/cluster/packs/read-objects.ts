import { readFile } from 'node:fs/promises'
import { parseExactJson } from '../../base/json.ts'
import { isObject } from '../../kubernetes/json.ts'
import type { KubernetesObject } from '../../kubernetes/client.ts'
import type { InventoryEntry } from '../../kubernetes/inventory.ts'
import { StepFailed } from '../step.ts'
import type { WantedNamespace } from '../wanted.ts'

/**
 * Reads the rendered objects of a manifest: JSON, one a line.
 * @param word only the lines with it
 * @throws StepFailed where a line is not an object
 */
export async function readObjects(file: string, word = ''): Promise<readonly KubernetesObject[]> {
  const lines = (await readFile(file, 'utf8')).split('\n')
  return lines.flatMap((line, index) => {
    if (line.trim() === '' || !line.includes(word)) return []
    const object = parseExactJson(line)
    if (isObject(object)) return [object]
    throw new StepFailed(
      `object ${index + 1} of ${file} lacks apiVersion, kind or metadata.name; correct the manifest of the pack, and create the cluster again`,
    )
  })
}

/** A Namespace of a manifest with what packs say of it beside: one field manager applies both, and would take it away. */
export function withNamespaceLabels(
  object: KubernetesObject,
  namespaces: readonly WantedNamespace[],
): KubernetesObject {
  const { apiVersion, kind, metadata } = object
  const given = namespaces.find(({ name }) => name === metadata.name)
  if (apiVersion !== 'v1' || kind !== 'Namespace' || !given) return object
  return {
    ...object,
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...given.labels },
      annotations: { ...metadata.annotations, ...given.annotations },
    },
  }
}

/** Reads the objects of a release. @returns undefined where the file is missing: the release was never installed */
export async function readRelease(file: string): Promise<readonly InventoryEntry[] | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as readonly InventoryEntry[]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
