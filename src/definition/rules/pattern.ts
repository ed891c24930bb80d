import { RE2JS } from 're2js'
import { estimatePattern } from './pattern-size.ts'

/** A pattern that may be searched for, or why it may not. */
export type Pattern =
  | {
      /** Instructions of its program. */
      readonly size: number
      /** Steps that a search takes at most; the first one compiles the pattern too. */
      readonly stepsFor: (value: string) => number
      /** Whether it is found anywhere in the value. */
      readonly isFoundIn: (value: string) => boolean
      readonly refusal?: never
    }
  | { readonly refusal: string; readonly size?: never; readonly stepsFor?: never; readonly isFoundIn?: never }

/** What was found out of a pattern once: its size, or why it is refused. */
export type Verdict = number | string

/** The patterns of a definition, each text once. */
export interface Patterns {
  find(source: string): Pattern
  /** Of all that were found so far. */
  verdicts(): [source: string, verdict: Verdict][]
}

const lengthLimit = 1_024
// Instructions. Of public profiles the largest pattern, an IPv6 address written out, has a thousand.
const sizeLimit = 2_000
const totalSizeLimit = 20_000
// What is that much too large by its text is not compiled to be counted.
const estimateLimit = 10_000
// A tenth of a second, and two.
const compileLimit = 1_000_000
const totalCompileLimit = 20_000_000

/**
 * Patterns in RE2 syntax, searched in linear time, as by MatchString of Go's regexp, for which the authors of profiles
 * write: `[a-z]+` takes `1a2`, and who means the whole value writes `^[a-z]+$`. There `$` is the end of the text, also
 * where the text ends with a line break.
 *
 * Each is compiled to count it, which takes up to 2 s for all of a definition: not on an event loop.
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
            : 'would take too long to compile, together with all those before it; use fewer classes and ranges',
      }
    try {
      const program = RE2JS.compile(source)
      const size = program.programSize()
      if (size > sizeLimit) return { refusal: describeSize(String(size)) }
      if (total + size > totalSizeLimit)
        return {
          refusal: `needs ${size} instructions; with all those before it that is more than the ${totalSizeLimit} that a definition may have`,
        }
      total += size
      return searchFor(size, 0, () => program)
    } catch (error) {
      return { refusal: describeRefusal(error) }
    }
  })
}

/**
 * Patterns that were counted before; each is compiled when it is searched for the first time.
 * @returns undefined for one that was not counted, or not by these limits
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

/** RE2's own words: `missing closing ): ...` becomes one line without its prefix. */
function describeRefusal(error: unknown): string {
  const words = error instanceof Error ? error.message : ''
  return `is refused by RE2: ${words.replace(/^error parsing regexp: /, '') || 'it cannot be read'}`
}
