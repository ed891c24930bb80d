/** Request rate of one client for one resource. Whole numbers. */
export interface Rate {
  /** The steady rate. */
  readonly requestsPerSecond: number
  /** Seconds of the steady rate that may be sent at once after a pause. */
  readonly burst: number
}

/**
 * A bucket of rate × burst tokens, filled at the rate; a request takes one. The state of a client is one number, its
 * mark: the time at which its bucket will be full again, in milliseconds × rate. In these units a token is 1000, all numbers
 * are whole, and the arithmetic is exact. A mark in the past, 0 for example, is a full bucket. This is the generic cell rate
 * algorithm (ITU-T I.371, Annex A).
 */
export interface Bucket {
  /** Tokens in a full bucket. */
  readonly capacity: number
  /** Takes a token: the new mark, or undefined when the bucket is empty. */
  take(mark: number, now: number): number | undefined
  /** Whole tokens left. */
  tokens(mark: number, now: number): number
  /** Milliseconds until there is a token. */
  waitMs(mark: number, now: number): number
  /** 0 for a full bucket, 1 for an empty one. */
  emptiness(mark: number, now: number): number
}

const unitsPerToken = 1_000

/** Times are whole monotonic milliseconds. */
export function createBucket({ requestsPerSecond, burst }: Rate): Bucket {
  const capacity = requestsPerSecond * burst
  const depth = capacity * unitsPerToken
  /** Units that are missing in the bucket. */
  const missing = (mark: number, now: number) => Math.max(0, mark - now * requestsPerSecond)
  return {
    capacity,
    take(mark, now) {
      const after = missing(mark, now) + unitsPerToken
      return after > depth ? undefined : now * requestsPerSecond + after
    },
    tokens: (mark, now) => Math.floor((depth - missing(mark, now)) / unitsPerToken),
    waitMs: (mark, now) =>
      Math.ceil(Math.max(0, missing(mark, now) + unitsPerToken - depth) / requestsPerSecond),
    emptiness: (mark, now) => missing(mark, now) / depth,
  }
}

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

/** Parses a setting such as `clusters=50/5`, or of a path of a table: 50 requests a second, and 5 seconds of them at once. */
export function parseResourceRate(text: string): [name: string, rate: Rate] {
  const [, name = '', requestsPerSecond, burst] = /^([^=]+)=(\d+)\/(\d+)$/.exec(text) ?? []
  return [name, { requestsPerSecond: Number(requestsPerSecond), burst: Number(burst) }]
}

/**
 * Decodes the path of a URL as the router does. The router refuses paths that cannot be decoded; they are returned as they are, which is
 * only a safeguard against a 500.
 */
export function decodePath(url: string): string {
  const [path = ''] = url.split(/[?#]/, 1)
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

/** A row of a table of rates: the rate of a path and of all paths below it that have no longer row. */
export interface RateRow extends Rate {
  /** `/v1/edgehosts/:uid/health`; a segment that begins with a colon or a brace is a parameter, which matches one segment. */
  readonly path: string
}

// A parameter of a row; names of paths are never empty here.
const parameter = ''

/**
 * Finds the row of a request: the one with most segments whose segments begin its path; of two equally long ones the one with a name where
 * the other has a parameter.
 * @returns a function of a URL as it was requested; it returns undefined for a path in no row
 */
export function createRowFinder(rows: readonly RateRow[]): (url: string) => RateRow | undefined {
  const table = rows
    .map((row) => ({
      row,
      segments: segmentsOf(row.path).map((each) => (isParameter(each) ? parameter : each)),
    }))
    .sort(
      (one, other) =>
        other.segments.length - one.segments.length || compareNames(one.segments, other.segments),
    )
  const known = new Map<string, RateRow>()
  for (const { row, segments } of table) {
    const twin = known.get(segments.join('/'))
    if (twin) throw new Error(`the rows ${twin.path} and ${row.path} are one`)
    known.set(segments.join('/'), row)
  }

  return (url) => {
    const path = segmentsOf(decodePath(url))
    const matches = (segment: string, at: number) =>
      segment === parameter ? Boolean(path[at]) : segment === path[at]
    return table.find(({ segments }) => segments.every(matches))?.row
  }
}

const segmentsOf = (path: string) => path.split('/').slice(1)
const isParameter = (segment: string) => segment.startsWith(':') || segment.startsWith('{')

/** Puts a name before a parameter at the first place where only one of two rows has a parameter. */
function compareNames(one: readonly string[], other: readonly string[]): number {
  const at = one.findIndex((segment, index) => (segment === parameter) !== (other[index] === parameter))
  return at === -1 ? 0 : one[at] === parameter ? 1 : -1
}
