/**
 * The known name that was most likely meant, or undefined when no name is close.
 * `port` finds `api.port` (same last part, of several the least nested one), `prot` finds `port` (few typing errors).
 */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  if (name.length > 100) return undefined
  const wanted = name.toLowerCase()
  const allowed = Math.max(1, Math.floor(wanted.length / 3))
  let nearest: string | undefined
  let best = allowed + 1
  for (const candidate of known) {
    const slips = distance(wanted, candidate.toLowerCase())
    if (slips < best) [nearest, best] = [candidate, slips]
  }
  if (nearest !== undefined) return nearest
  const lastPart = wanted.slice(wanted.lastIndexOf('.') + 1)
  const sameEnd = known.filter((candidate) => candidate.toLowerCase().endsWith(`.${lastPart}`))
  const depth = Math.min(...sameEnd.map(depthOf))
  const [first, second] = sameEnd.filter((candidate) => depthOf(candidate) === depth)
  return second === undefined ? first : undefined
}

const depthOf = (name: string) => name.split('.').length

/** Optimal string alignment distance: insertions, deletions, substitutions and swaps of adjacent characters. */
function distance(from: string, to: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1]
      const swapped = row > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      current[column] = Math.min(
        (last[column] ?? Infinity) + 1,
        (current[column - 1] ?? Infinity) + 1,
        (last[column - 1] ?? Infinity) + (same ? 0 : 1),
        swapped ? (beforeLast[column - 2] ?? Infinity) + 1 : Infinity,
      )
    }
    beforeLast = last
    last = current
  }
  return last[to.length] ?? Infinity
}
