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
