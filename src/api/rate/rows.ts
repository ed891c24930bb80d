import { decodePath } from '../decode-path.ts'
import type { Rate } from './bucket.ts'

/** A row of a table of rates: the rate of a path and of all paths below it that have no longer row. */
export interface RateRow extends Rate {
  /** `/v1/edgehosts/:uid/health`; a segment that begins with a colon or a brace is a parameter, which matches one segment. */
  readonly path: string
}

// A parameter of a row; names of paths are never empty here.
const parameter = ''

/**
 * Finds the row of a request: the one with most segments whose segments begin its path; of two equally long ones that with a name where
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
