import { RE2JS } from 're2js'
import { estimatePattern } from './pattern-size.ts'

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
