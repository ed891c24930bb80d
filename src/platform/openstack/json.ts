import { isRecord, type JsonObject } from '../../base/json.ts'

// What a cloud sends may be anything.

/** The objects of an array; none for anything else. */
export const objectsIn = (value: unknown): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter(isRecord) : []

/** A text; empty for anything else. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
