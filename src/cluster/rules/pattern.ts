import { RE2JS } from 're2js'

/** A pattern that was compiled, or why it was not. */
export type Pattern =
  | {
      /** Whether it is found anywhere in the value. */
      readonly isFoundIn: (value: string) => boolean
      /** Steps a search takes at most for each character. */
      readonly size: number
      readonly refusal?: never
    }
  | { readonly refusal: string; readonly isFoundIn?: never; readonly size?: never }

const lengthLimit = 1_024
// Instructions of a program, estimated before it is compiled: 100,000 take about 0.3 s to compile.
const sizeLimit = 100_000
const totalSizeLimit = 2_000_000

/**
 * Compiles patterns of a definition, each text once, in RE2 syntax and linear time. The pattern is searched for, as by
 * MatchString of Go's regexp, for which the authors of profiles write: `[a-z]+` takes `1a2`, and who means the whole
 * value writes `^[a-z]+$`. There `$` is the end of the text, also where the text ends with a line break.
 */
export function createPatterns(): { compile: (source: string) => Pattern } {
  const known = new Map<string, Pattern>()
  let total = 0

  const build = (source: string): Pattern => {
    if (source.length > lengthLimit) return { refusal: `is longer than ${lengthLimit} characters` }
    const size = estimateSize(source)
    if (size > sizeLimit) return { refusal: 'repeats so much that it would be too large; repeat less' }
    total += size
    if (total > totalSizeLimit) return { refusal: 'is too large, together with all those before it' }
    try {
      const compiled = RE2JS.compile(source)
      return { isFoundIn: (value) => compiled.test(value), size: compiled.programSize() }
    } catch (error) {
      return { refusal: describeRefusal(error) }
    }
  }

  const compile = (source: string): Pattern => {
    const earlier = known.get(source)
    if (earlier) return earlier
    const pattern = build(source)
    known.set(source, pattern)
    return pattern
  }
  return { compile }
}

/**
 * An upper bound of the instructions: each repetition may hold all the others. A class by property is a table of some
 * hundred ranges, read once however often it is repeated.
 */
function estimateSize(source: string): number {
  let tables = 0
  let repetitions = 0
  for (const [found, low, high] of source.matchAll(/\\[pP]|\{([0-9]{1,9})(?:,([0-9]{0,9}))?\}/g)) {
    if (found.startsWith('\\')) tables += 300
    else repetitions += Math.max(Number(low), Number(high ?? 0))
  }
  return source.length * Math.max(1, repetitions) + tables
}

/** RE2's own words: `missing closing ): ...` becomes one line without its prefix. */
function describeRefusal(error: unknown): string {
  const words = error instanceof Error ? error.message : ''
  return `is refused by RE2: ${words.replace(/^error parsing regexp: /, '') || 'it cannot be read'}`
}
