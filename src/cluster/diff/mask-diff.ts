import type { ClusterDiff } from './schemas.ts'

/** Fields with words of the API, which contain nothing of a cluster. */
const wordsOfApi: ReadonlySet<string> = new Set(['change', 'fields', 'target'])

/**
 * Masks every text of a diff, since a sensitive value may be in the name of anything that a definition makes. Pure.
 * @param hide masks the sensitive values of both revisions
 */
export const maskDiff = (diff: ClusterDiff, hide: (text: string) => string): ClusterDiff =>
  maskIn(diff, hide) as ClusterDiff

function maskIn(value: unknown, hide: (text: string) => string): unknown {
  if (typeof value === 'string') return hide(value)
  if (Array.isArray(value)) return value.map((each) => maskIn(each, hide))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, wordsOfApi.has(key) ? each : maskIn(each, hide)]),
  )
}
