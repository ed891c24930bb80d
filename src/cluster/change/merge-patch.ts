import { isRecord } from '../../base/json.ts'
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
  if (!isRecord(patch)) return patch
  const merged = new Map(isRecord(target) ? Object.entries(target) : [])
  for (const [key, value] of Object.entries(patch))
    if (value === null) merged.delete(key)
    else merged.set(key, merge(merged.get(key), value))
  return Object.fromEntries(merged)
}
