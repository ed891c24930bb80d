import { isRecord } from '../base/json.ts'
import type { KubernetesObject, ObjectMetadata } from './client.ts'

/** Whether a value has the form of a Kubernetes object. */
export const isObject = (value: unknown): value is KubernetesObject =>
  isRecord(value) &&
  typeof value.apiVersion === 'string' &&
  typeof value.kind === 'string' &&
  isRecord(value.metadata) &&
  typeof value.metadata.name === 'string'

/** Drops `metadata.managedFields`: as much text again as the object itself, and of use to the API server only. */
export function withoutManagers(object: KubernetesObject): KubernetesObject {
  const metadata: Record<string, unknown> & ObjectMetadata = { ...object.metadata }
  delete metadata.managedFields
  return { ...object, metadata }
}

/** A condition in the status of an object; a field that is missing is empty. */
interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

/** A field anywhere in an object, or in a part of one. */
export function fieldAt(object: unknown, path: readonly string[]): unknown {
  let value: unknown = object
  for (const name of path) value = isRecord(value) ? value[name] : undefined
  return value
}

/** A number anywhere in an object; undefined where there is none. */
export function numberAt(object: unknown, path: readonly string[]): number | undefined {
  const value = fieldAt(object, path)
  return typeof value === 'number' ? value : undefined
}

/** A text anywhere in an object; empty where there is none. */
export const textAt = (object: unknown, path: readonly string[]): string => text(fieldAt(object, path))

/** The conditions in the status of an object. */
export function conditionsOf(object: KubernetesObject): readonly Condition[] {
  return listAt(object, ['status', 'conditions']).map(({ type, status, reason, message }) => ({
    type: text(type),
    status: text(status),
    reason: text(reason),
    message: text(message),
  }))
}

/** The condition of a type; undefined where there is none. */
export const conditionOf = (object: KubernetesObject, wanted: string): Condition | undefined =>
  conditionsOf(object).find(({ type }) => type === wanted)

/** The objects of a list anywhere in an object. */
export function listAt(
  object: unknown,
  path: readonly string[],
): readonly Readonly<Record<string, unknown>>[] {
  const value = fieldAt(object, path)
  return Array.isArray(value) ? value.filter(isRecord) : []
}

/** Whether a status of a condition is true, in the spelling of Kubernetes. */
export const isTrue = (status: string): boolean => status === 'True'

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The fields of an event of Kubernetes that are read: thousands with all of theirs would be megabytes. */
export function trimEvent(object: KubernetesObject): KubernetesObject {
  const { apiVersion, kind, metadata, involvedObject, reason, message, type, count, source } = object
  const { name, namespace, uid, creationTimestamp } = metadata
  const { firstTimestamp, lastTimestamp, eventTime, series, reportingComponent, reportingInstance } = object
  return {
    apiVersion,
    kind,
    involvedObject,
    reason,
    message,
    type,
    count,
    source,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
    },
    firstTimestamp,
    lastTimestamp,
    eventTime,
    series,
    reportingComponent,
    reportingInstance,
  }
}
