import type { Rate } from './bucket.ts'

/** The resource of every path without a resource of its own. */
export const otherResource = 'other'

/**
 * The resource that requests to a path count for: the first segment after `/v1/`, under `/v1/edge-mgmt/` the next one. Sub-resources
 * thus count together (API conventions, "Limits").
 */
export function resourceOf(url: string): string {
  const [path = ''] = url.split('?', 1)
  const [, version, first, second] = path.split('/')
  if (version !== 'v1') return otherResource
  return (first === 'edge-mgmt' ? second : first) || otherResource
}

/** Parses a setting such as `clusters=50/5`, or of a path of a table: 50 requests a second, and those of 5 seconds at once. */
export function parseResourceRate(text: string): [name: string, rate: Rate] {
  const [, name = '', requestsPerSecond, burst] = /^([^=]+)=(\d+)\/(\d+)$/.exec(text) ?? []
  return [name, { requestsPerSecond: Number(requestsPerSecond), burst: Number(burst) }]
}
