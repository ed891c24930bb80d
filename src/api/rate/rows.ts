import { decodePath } from '../decode-path.ts'
import type { Rate } from './bucket.ts'

/** A row of a table of rates: the rate of a path and of all paths below it that have no longer row. */
export interface RateRow extends Rate {
  /** `/v1/edgehosts/:uid/health`; a segment that begins with a colon or a brace is a parameter, which matches one segment. */
  readonly path: string
}

interface Node {
  readonly children: Map<string, Node>
  parameter: Node | undefined
  row: RateRow | undefined
}

const createNode = (): Node => ({ children: new Map(), parameter: undefined, row: undefined })
const isParameter = (segment: string) => segment.startsWith(':') || segment.startsWith('{')

/**
 * Finds the row of a request: the one with most segments whose segments begin its path; of two equally long ones that with a name where
 * the other has a parameter.
 * @returns a function of a URL as it was requested; it returns undefined for a path in no row
 */
export function createRowFinder(rows: readonly RateRow[]): (url: string) => RateRow | undefined {
  const root = createNode()
  for (const row of rows) {
    let node = root
    for (const segment of segmentsOf(row.path)) {
      if (isParameter(segment)) node = node.parameter ??= createNode()
      else node = childOf(node, segment)
    }
    if (node.row) throw new Error(`the rows ${node.row.path} and ${row.path} are one`)
    node.row = row
  }

  function deepest(
    node: Node,
    segments: readonly string[],
    at: number,
  ): { row: RateRow; at: number } | undefined {
    const segment = segments[at]
    const below = segment
      ? [node.children.get(segment), node.parameter].flatMap((next) =>
          next ? (deepest(next, segments, at + 1) ?? []) : [],
        )
      : []
    const longest = below.reduce<{ row: RateRow; at: number } | undefined>(
      (best, each) => (best && best.at >= each.at ? best : each),
      undefined,
    )
    return longest ?? (node.row && { row: node.row, at })
  }

  return (url) => deepest(root, segmentsOf(decodePath(url)), 0)?.row
}

const segmentsOf = (path: string) => path.split('/').slice(1)

function childOf({ children }: Node, segment: string): Node {
  const child = children.get(segment) ?? createNode()
  children.set(segment, child)
  return child
}
