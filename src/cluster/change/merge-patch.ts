import { canonicalText } from '../configuration/canonical.ts'

/**
 * Merges a patch into a document (RFC 7396): null takes a member away, objects are merged, everything else replaces.
 * @returns another document
 * @throws AppError BadRequest for a patch that is nested too deeply
 */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  // Refuses what is nested too deeply.
  canonicalText(patch)
  return merge(document, patch)
}

function merge(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const merged = new Map(isObject(target) ? Object.entries(target) : [])
  for (const [key, value] of Object.entries(patch))
    if (value === null) merged.delete(key)
    else merged.set(key, merge(merged.get(key), value))
  return Object.fromEntries(merged)
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
