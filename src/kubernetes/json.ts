import { isRecord } from '../base/json.ts'
import type { KubernetesObject, ObjectMetadata } from './client.ts'

/** Whether a value has what all Kubernetes objects have. */
export const isObject = (value: unknown): value is KubernetesObject =>
  isRecord(value) &&
  typeof value.apiVersion === 'string' &&
  typeof value.kind === 'string' &&
  isRecord(value.metadata) &&
  typeof value.metadata.name === 'string'

/** Takes an object apart from who manages its fields: as much text again as the object itself, and of use to the API server only. */
export function withoutManagers(object: KubernetesObject): KubernetesObject {
  const metadata: Record<string, unknown> & ObjectMetadata = { ...object.metadata }
  delete metadata.managedFields
  return { ...object, metadata }
}
