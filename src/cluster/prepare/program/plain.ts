import { exactDigitsOf, isRecord } from '../../../base/json.ts'

export type Mapping = Readonly<Record<string, unknown>>

/** The mapping below keys; empty if there is none. */
export function mappingAt(value: unknown, ...keys: readonly string[]): Mapping {
  const found = valueAt(value, ...keys)
  return isRecord(found) ? found : {}
}

/** The value below keys; undefined if there is none. */
export function valueAt(value: unknown, ...keys: readonly string[]): unknown {
  let found: unknown = value
  for (const key of keys) found = isRecord(found) && Object.hasOwn(found, key) ? found[key] : undefined
  return found
}

/** The text of a single value; undefined for nothing, lists and mappings. */
export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : exactDigitsOf(value)
