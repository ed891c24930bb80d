import type { KubernetesClient, KubernetesObject } from '../../../kubernetes/client.ts'
import { entryOf } from '../../../kubernetes/inventory.ts'
import { differences } from './differences.ts'

/** What putting an object right asks of the API server. */
export type PutRightClient = Pick<KubernetesClient, 'resourceOf' | 'get' | 'wouldApply' | 'apply'>

const shownFields = 5

/**
 * Puts an object right where something of it is not as it is wanted. Fields that are not wanted in any way, and so belong to other field
 * managers, are left alone.
 * @param wanted with its namespace, as it is applied
 * @returns what was wrong, as the end of a sentence; undefined where nothing was
 * @throws KubernetesError
 */
export async function putRight(
  client: PutRightClient,
  wanted: KubernetesObject,
  signal: AbortSignal,
): Promise<string | undefined> {
  const resource = await client.resourceOf(wanted.apiVersion, wanted.kind, signal)
  if (!resource) return undefined
  const found = await client.get(resource, entryOf(wanted), signal)
  // It is looked at again when it is gone.
  if (found?.metadata.deletionTimestamp !== undefined) return undefined
  if (!found) {
    // A Job may be set to be removed when it has ended.
    if (wanted.kind === 'Job') return undefined
    await client.apply(resource, wanted, signal)
    return 'it was deleted, and is made again'
  }
  const fields = differences(found, await client.wouldApply(resource, wanted, signal))
  if (fields.length === 0) return undefined
  await client.apply(resource, wanted, signal)
  const more = fields.length - shownFields
  return `changed by hand or by another program, and put right: ${fields.slice(0, shownFields).join(', ')}${more > 0 ? `, and ${more} more` : ''}`
}
