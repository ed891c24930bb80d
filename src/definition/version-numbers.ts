/** A version, which need not be semver, as the numbers at its start and what follows, as in `1.33.x` or `1.2-rc1`. */
export function splitVersion(version: string): {
  readonly numbers: readonly number[]
  readonly rest: string
} {
  const [start = ''] = /^v?[0-9]+(?:\.[0-9]+)*/.exec(version) ?? []
  const numbers = start.replace('v', '').split('.').filter(Boolean).map(Number)
  return { numbers, rest: version.slice(start.length) }
}

/** Orders the first `length` numbers of two versions; one that is missing is 0. @returns negative, 0 or positive */
export function compareNumbers(one: readonly number[], other: readonly number[], length: number): number {
  for (let at = 0; at < length; at += 1) {
    const difference = (one[at] ?? 0) - (other[at] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
