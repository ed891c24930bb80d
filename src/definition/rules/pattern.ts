import { RE2JS } from 're2js'

/** An estimate of the cost of a pattern from its text alone, without compiling it. */
export interface PatternEstimate {
  /** Instructions of its program: at most 3 fewer than it really has, and at times a few more. */
  readonly size: number
  /** Steps to compile it; RE2JS does about 10,000 steps in a millisecond. */
  readonly compileSteps: number
}

// Steps for an instruction, for a class by property (some hundred ranges), and for a range above ASCII, which is case-folded character by character.
const stepsOf = { instruction: 20, table: 1_500, foldedRange: 45_000 }

/** @param source RE2 syntax (https://github.com/google/re2/wiki/Syntax); for an invalid pattern the estimate is arbitrary */
export function estimatePattern(source: string): PatternEstimate {
  const size = estimateSize(source)
  const tables = count(source, /\\[pP]/g)
  const isFolded = /\(\?[A-Za-z-]*i/.test(source)
  const foldedRanges = isFolded ? count(source, /-(?:[^\0-\x7f]|\\[x0-7])/g) : 0
  return {
    size,
    compileSteps: size * stepsOf.instruction + tables * stepsOf.table + foldedRanges * stepsOf.foldedRange,
  }
}

const count = (text: string, what: RegExp) => text.match(what)?.length ?? 0

interface Group {
  total: number
  /** Size of the part that a following repetition would repeat. */
  last: number
}

const groupHeader = /\((?:\?(?:P?<[^>]*>|[A-Za-z-]*[:)]))?/y
const repetition = /\{([0-9]{1,4})(,([0-9]{0,4}))?\}/y

/** Repetitions multiply the size of what they repeat, also when they are nested. One pass. */
function estimateSize(source: string): number {
  const outer: Group[] = []
  let group: Group = { total: 0, last: 0 }
  const add = (size: number) => {
    group.total += size
    group.last = size
  }
  const repeat = (size: number) => {
    group.total += size - group.last
    group.last = size
  }
  const close = () => {
    // An empty group is an instruction that does nothing.
    const inner = Math.max(1, group.total)
    group = outer.pop() ?? { total: 0, last: 0 }
    add(inner + 2)
  }
  for (let at = 0; at < source.length;) {
    const character = source[at] ?? ''
    if (character === '\\') {
      const isQuote = source[at + 1] === 'Q'
      const end = isQuote ? endOfQuote(source, at) : endOfEscape(source, at)
      // A quoted text has as many instructions as characters.
      add(isQuote ? end - at : 1)
      at = end
    } else if (character === '[') {
      add(1)
      at = endOfClass(source, at)
    } else if (character === '(') {
      groupHeader.lastIndex = at
      const [header = '('] = groupHeader.exec(source) ?? []
      at += header.length
      if (header.endsWith(')')) continue
      outer.push(group)
      group = { total: 0, last: 0 }
    } else if (character === '{') {
      repetition.lastIndex = at
      const [whole, low, comma, high] = repetition.exec(source) ?? []
      if (whole === undefined) add(1)
      else repeat((group.last + 1) * copies(Number(low), comma !== undefined, high))
      at += whole?.length ?? 1
    } else {
      if (character === ')') close()
      else if (character === '|') add(2)
      else if ('*+?'.includes(character)) repeat(group.last + 1)
      else add(1)
      at += 1
    }
  }
  while (outer.length > 0) close()
  return group.total
}

const copies = (low: number, isOpen: boolean, high: string | undefined) =>
  Math.max(1, isOpen ? (high ? Number(high) : low + 1) : low)

function endOfQuote(source: string, at: number): number {
  const end = source.indexOf('\\E', at + 2)
  return end === -1 ? source.length : end + 2
}

function endOfEscape(source: string, at: number): number {
  if (!/[pPx]/.test(source[at + 1] ?? '') || source[at + 2] !== '{') return at + 2
  const end = source.indexOf('}', at)
  return end === -1 ? source.length : end + 1
}

function endOfClass(source: string, start: number): number {
  let at = start + (source[start + 1] === '^' ? 2 : 1)
  // As the first character of a class, ] is an ordinary character.
  if (source[at] === ']') at += 1
  while (at < source.length && source[at] !== ']') {
    const named = source.startsWith('[:', at) ? source.indexOf(':]', at) : -1
    if (named !== -1) at = named + 2
    else at = source[at] === '\\' ? endOfEscape(source, at) : at + 1
  }
  return at + 1
}

/** A pattern that may be searched for, or why it is refused. */
export type Pattern =
  | {
      /** Instructions of its program. */
      readonly size: number
      /** The most steps that a search can take; the first search compiles the pattern too. */
      readonly stepsFor: (value: string) => number
      /** Whether it matches anywhere in the value. */
      readonly isFoundIn: (value: string) => boolean
      readonly refusal?: never
    }
  | { readonly refusal: string; readonly size?: never; readonly stepsFor?: never; readonly isFoundIn?: never }

/** The size of a pattern, or why it is refused. */
export type Verdict = number | string

/** The patterns of a definition, each text once. */
export interface Patterns {
  find(source: string): Pattern
  /** The verdicts on all patterns that `find` was called with. */
  verdicts(): [source: string, verdict: Verdict][]
}

const lengthLimit = 1_024
// Instructions. The largest pattern in public profiles, for an IPv6 address, has a thousand.
const sizeLimit = 2_000
const totalSizeLimit = 20_000
// A pattern whose estimate is larger is refused without compiling it.
const estimateLimit = 10_000
// Steps: 0.1 s for one pattern, 2 s for all.
const compileLimit = 1_000_000
const totalCompileLimit = 20_000_000

/**
 * Patterns in RE2 syntax, searched in linear time like MatchString of Go's regexp, for which authors of profiles write
 * them: `[a-z]+` matches `1a2`; to match the whole value, an author writes `^[a-z]+$`. `$` matches only at the end of the
 * text, not before a final line break.
 *
 * Each pattern is compiled to count its instructions. That takes up to 2 s for a definition, so it must not run on an
 * event loop.
 */
export function createPatterns(): Patterns {
  let [total, compiled] = [0, 0]
  return collect((source): Pattern => {
    if (source.length > lengthLimit) return { refusal: `is longer than ${lengthLimit} characters` }
    const estimate = estimatePattern(source)
    if (estimate.size > estimateLimit) return { refusal: describeSize(`about ${estimate.size}`) }
    compiled += estimate.compileSteps
    if (estimate.compileSteps > compileLimit || compiled > totalCompileLimit)
      return {
        refusal:
          estimate.compileSteps > compileLimit
            ? 'would take too long to compile; use fewer classes and ranges'
            : 'would take too long to compile, together with all earlier patterns; use fewer classes and ranges',
      }
    try {
      const program = RE2JS.compile(source)
      const size = program.programSize()
      if (size > sizeLimit) return { refusal: describeSize(String(size)) }
      if (total + size > totalSizeLimit)
        return {
          refusal: `needs ${size} instructions; together with all earlier patterns that is more than the ${totalSizeLimit} that a definition may have`,
        }
      total += size
      return searchFor(size, 0, () => program)
    } catch (error) {
      return { refusal: describeRefusal(error) }
    }
  })
}

/**
 * Patterns whose size is already known; each is compiled at its first search. A pattern without a verdict is refused.
 */
export function createCountedPatterns(verdicts: ReadonlyMap<string, Verdict>): Patterns {
  return collect((source): Pattern => {
    const verdict = verdicts.get(source) ?? 'was never counted'
    if (typeof verdict === 'string') return { refusal: verdict }
    return searchFor(verdict, estimatePattern(source).compileSteps, () => RE2JS.compile(source))
  })
}

function collect(build: (source: string) => Pattern): Patterns {
  const known = new Map<string, Pattern>()
  return {
    find(source) {
      const pattern = known.get(source) ?? build(source)
      known.set(source, pattern)
      return pattern
    },
    verdicts: () => [...known].map(([source, { size, refusal }]) => [source, refusal ?? size]),
  }
}

function searchFor(size: number, compileSteps: number, compile: () => RE2JS): Pattern {
  let program: RE2JS | undefined
  return {
    size,
    stepsFor: ({ length }) => length * size + (program ? 0 : compileSteps),
    isFoundIn: (value) => (program ??= compile()).test(value),
  }
}

const describeSize = (size: string) => `needs ${size} instructions; ${sizeLimit} are allowed, so repeat less`

/** The message of RE2 without its prefix: `is refused by RE2: missing closing ): ...`. */
function describeRefusal(error: unknown): string {
  const words = error instanceof Error ? error.message : ''
  return `is refused by RE2: ${words.replace(/^error parsing regexp: /, '') || 'it cannot be read'}`
}
