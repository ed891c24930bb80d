import type { KubernetesObject, ObjectMetadata } from './client.ts'

/** Whether a value of parsed JSON is an object. */
export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether a value has what all Kubernetes objects have. */
export const isObject = (value: unknown): value is KubernetesObject =>
  isRecord(value) &&
  typeof value.apiVersion === 'string' &&
  typeof value.kind === 'string' &&
  isRecord(value.metadata) &&
  typeof value.metadata.name === 'string'

/** @returns undefined for text that is not JSON */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Takes an object apart from who manages its fields: as much text again as the object itself, and of use to the API server only. */
export function withoutManagers(object: KubernetesObject): KubernetesObject {
  const metadata: Record<string, unknown> & ObjectMetadata = { ...object.metadata }
  delete metadata.managedFields
  return { ...object, metadata }
}
