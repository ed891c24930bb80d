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

/**
 * The version of a pack that a profile means. A tag such as `1.25.x` floats: the platform takes the newest version, and the export names it
 * beside the tag.
 * @param version empty where the export names none
 * @param present the versions of the folders of its name
 * @param pick which one where several fit
 * @returns the tag, where no folder fits or none is picked; it may be empty
 */
export function chooseVersion(
  tag: string,
  version: string,
  present: readonly string[],
  pick: (fitting: readonly string[]) => string | undefined = onlyOne,
): string {
  if (present.includes(tag)) return tag
  const start = tag.endsWith('.x') ? tag.slice(0, -1) : ''
  if (tag !== '' && start === '') return tag
  if (version !== '' && (present.includes(version) || tag === '')) return version
  return pick(present.filter((each) => each.startsWith(start))) ?? tag
}

const onlyOne = ([one, another]: readonly string[]) => (another === undefined ? one : undefined)

/** The newest of versions, which need not be semver; the same one in whatever order they are. */
export const newestVersion = (versions: readonly string[]): string | undefined =>
  [...versions].sort(compareTexts).at(-1)

/** First by the numbers at the start, then as semver orders the rest: `-rc.1` is before nothing, and nothing before `+1`. */
function compareTexts(one: string, other: string): number {
  const [ours, theirs] = [splitVersion(one), splitVersion(other)]
  const length = Math.max(ours.numbers.length, theirs.numbers.length)
  return (
    compareNumbers(ours.numbers, theirs.numbers, length) ||
    rankOf(ours.rest) - rankOf(theirs.rest) ||
    natural.compare(ours.rest, theirs.rest) ||
    (one < other ? -1 : Number(one > other))
  )
}

// One locale, so that the order is the same on each machine.
const natural = new Intl.Collator('en', { numeric: true })

const rankOf = (rest: string) => (rest === '' ? 1 : rest.startsWith('-') ? 0 : 2)
