import type { KubernetesObject } from '../../../kubernetes/client.ts'
import { exactDigitsOf, isRecord } from '../../../base/json.ts'

// What the API server itself writes with each change.
const written = new Set(['metadata.resourceVersion', 'metadata.generation', 'metadata.managedFields'])

/**
 * Names of the fields in which two forms of an object differ, without their values, which may be secret. Pure.
 * @returns for example `spec.replicas`, `data.a`, `spec.template.spec.containers[web].image`; empty where they are equal
 */
export function differences(one: KubernetesObject, other: KubernetesObject): readonly string[] {
  const found: string[] = []
  compare(one, other, '', found)
  return found
}

function compare(one: unknown, other: unknown, path: string, found: string[]): void {
  if (written.has(path)) return
  if (isRecord(one) && isRecord(other)) {
    for (const name of new Set([...Object.keys(one), ...Object.keys(other)]))
      compare(one[name], other[name], path === '' ? name : `${path}.${name}`, found)
  } else if (Array.isArray(one) && Array.isArray(other) && one.length === other.length) {
    const others: readonly unknown[] = other
    for (const [index, item] of (one as readonly unknown[]).entries())
      compare(item, others[index], `${path}[${nameIn(item) ?? index}]`, found)
  } else if (one !== other && !isSameNumber(one, other)) found.push(path)
}

/** Numbers beyond 2^53, each of which is an object of its own. */
function isSameNumber(one: unknown, other: unknown): boolean {
  const digits = exactDigitsOf(one)
  return digits !== undefined && digits === exactDigitsOf(other)
}

const nameIn = (item: unknown) => (isRecord(item) && typeof item.name === 'string' ? item.name : undefined)
