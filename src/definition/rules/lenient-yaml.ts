/** A text in strict YAML 1.2, with the original positions of its characters. */
export interface StrictYaml {
  readonly text: string
  /** Maps an offset to the original text. */
  readonly originalOf: (offset: number) => number
  /** Offset of a tab that Helm and kubectl refuse as indentation, although YAML 1.2 allows it in an empty line. */
  readonly tab: number | undefined
}

interface Edit {
  readonly at: number
  readonly removed: number
  readonly text: string
}

/**
 * Rewrites a text that the readers of Helm and kubectl (libyaml and its descendants) accept as YAML 1.2:
 * - a line of a quoted scalar or of a flow collection may have any indentation: the missing spaces are added. Leading
 *   blanks are folded there, so no value changes;
 * - the header of a block scalar may be in a line of its own, no deeper than its key: the missing spaces are added;
 * - a comment may directly follow a quote, a bracket or the header of a block scalar: a space is added;
 * - `\'` is an escape in double quotes: it becomes `\x27`.
 * All other text is unchanged. One pass tracks indentation and scalars as the scanner of libyaml does. Text that is invalid
 * for libyaml too, such as an unclosed quote, is left for the parser to refuse. Linear; never throws.
 */
export function toStrictYaml(text: string): StrictYaml {
  const { edits, tab } = createScanner(text).scan()
  const strict =
    edits.length === 0 ? { text, originalOf: (offset: number) => offset } : applyEdits(text, edits)
  return { ...strict, tab }
}

function applyEdits(text: string, edits: readonly Edit[]): Omit<StrictYaml, 'tab'> {
  const parts: string[] = []
  // For each edit, the offset of the text that follows it: in the new text (after) and in the original (before).
  const after: number[] = []
  const before: number[] = []
  let at = 0
  let length = 0
  for (const edit of edits) {
    parts.push(text.slice(at, edit.at), edit.text)
    length += edit.at - at + edit.text.length
    at = edit.at + edit.removed
    after.push(length)
    before.push(at)
  }
  parts.push(text.slice(at))
  const originalOf = (offset: number): number => {
    let [low, high] = [0, edits.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((after[middle] ?? 0) <= offset) low = middle + 1
      else high = middle
    }
    const moved = low === 0 ? offset : (before[low - 1] ?? 0) + offset - (after[low - 1] ?? 0)
    // An offset inside an inserted text is mapped to the place of the insertion.
    return Math.min(moved, edits[low]?.at ?? text.length)
  }
  return { text: parts.join(''), originalOf }
}

const blanks = /[ \t\r]*/y
const spaces = / */y
const toLineEnd = /[^\n]*/y
const marker = /(?:---|\.\.\.)(?=[ \t\r\n]|$)/y
const isBlankLine = /[ \t]*(?:\r?\n|$)/y
const indicator = /[-?:](?=[ \t\r\n]|$)/y
const property = /[&*!][^ \t\r\n,[\]{}]*/y
const blockHeader = /[|>][-+0-9]*/y
const inDouble = /[^"\\\n]*/y
const inSingle = /[^'\n]*/y
const wordInBlock = /[^ \t\r\n:#]*/y
const wordInFlow = /[^ \t\r\n:#,[\]{}]*/y
const endsPlain = /[:](?=[ \t\r\n]|$)/y
const endsPlainInFlow = /[:](?=[ \t\r\n,[\]{}]|$)/y

/** Scans only as much as is needed to distinguish scalars, flow collections and the indentation of blocks. */
function createScanner(text: string) {
  const edits: Edit[] = []
  // Deep indentation on many lines would fill the memory; real texts come nowhere near this limit.
  let room = text.length + 65_536
  let at = text.startsWith('\ufeff') ? 1 : 0
  let lineStart = at
  let indent = -1
  let outer: number[] = []
  let flow = 0
  // Number of edits before the bracket that is now open.
  let unopened = 0
  // Column where a key may have begun in this line; `true`: a key may begin at the next token.
  let key: number | boolean = true
  let tab: number | undefined

  const change = (from: number, removed: number, replacement: string) => {
    room -= replacement.length
    if (room >= 0) edits.push({ at: from, removed, text: replacement })
  }
  const column = () => at - lineStart
  const end = (pattern: RegExp, from = at): number => {
    pattern.lastIndex = from
    return pattern.test(text) ? pattern.lastIndex : from
  }
  const roll = (to: number) => {
    if (flow > 0 || indent >= to) return
    outer.push(indent)
    indent = to
  }
  const unroll = (to: number) => {
    while (flow === 0 && indent > to) indent = outer.pop() ?? -1
  }
  const beginKey = () => {
    if (key === true) key = column()
  }

  /** Skips a line break. If the next line is indented too little for the surrounding block, spaces are added. */
  const nextLine = (isIndented: boolean) => {
    at += 1
    lineStart = at
    if (!isIndented || end(isBlankLine) > at) return
    const lacking = indent + 1 - (end(spaces) - at)
    if (lacking > 0) change(at, 0, ' '.repeat(lacking))
  }
  /** Records the first tab inside the indentation that a line needs to belong to the surrounding block. */
  const findTab = (line: number, depth: number) => {
    const found = end(spaces, line)
    if (text[found] === '\t' && found - line < depth) tab ??= found
  }
  const isAtMarker = () => at === lineStart && end(marker) > at

  const scanQuoted = (quote: string) => {
    const inside = quote === '"' ? inDouble : inSingle
    const before = edits.length
    for (at += 1; at < text.length;) {
      at = end(inside)
      const found = text[at]
      if (found === '\n') {
        nextLine(true)
        if (isAtMarker()) break
      } else if (found === '\\') {
        if (text[at + 1] === "'") change(at + 1, 1, 'x27')
        at += text[at + 1] === '\n' || (text[at + 1] === '\r' && text[at + 2] === '\n') ? 1 : 2
      } else if (text.startsWith("''", at)) at += 2
      else {
        at += 1
        return
      }
    }
    edits.length = before
  }

  const scanBlock = () => {
    if (column() <= indent && end(spaces, lineStart) === at)
      change(lineStart, 0, ' '.repeat(indent + 1 - column()))
    const headerEnd = end(blockHeader)
    if (text[headerEnd] === '#') change(headerEnd, 0, ' ')
    const explicit = /[1-9]/.exec(text.slice(at, headerEnd))
    at = end(toLineEnd, headerEnd)
    const least = explicit ? Math.max(indent, 0) + Number(explicit[0]) : Math.max(indent + 1, 1)
    let needed = explicit ? least : undefined
    let deepest = least
    while (at < text.length) {
      const next = at + 1
      const depth = end(spaces, next) - next
      const isEmpty = end(isBlankLine, next) > next || next >= text.length
      if (isEmpty) findTab(next, needed ?? Infinity)
      if (!isEmpty) needed ??= Math.max(depth, deepest)
      else deepest = Math.max(deepest, depth)
      if (!isEmpty && depth < (needed ?? 0)) return
      lineStart = next
      at = end(toLineEnd, next)
    }
  }

  /** Plain text of one line, without blanks at its end. */
  const scanWords = () => {
    const from = at
    const [word, stop] = flow > 0 ? [wordInFlow, endsPlainInFlow] : [wordInBlock, endsPlain]
    for (;;) {
      at = end(word)
      const next = end(blanks)
      const found = text[next] ?? '\n'
      if (next > at && found !== '\n' && found !== '#') at = next
      else if (next === at && (found === '#' || (found === ':' && end(stop) === at))) at += 1
      else break
    }
    // A character with which no plain text can begin is a token of its own.
    if (at === from) at += 1
  }

  const scanPlain = () => {
    for (;;) {
      scanWords()
      const lineEnd = end(blanks)
      if (flow > 0 || text[lineEnd] !== '\n') return
      // The next line that is not empty continues the scalar if it is deeper than the surrounding block.
      let next = lineEnd
      while (next < text.length && end(isBlankLine, next + 1) > next + 1) {
        findTab(next + 1, indent + 1)
        next = end(toLineEnd, next + 1)
      }
      const begin = end(blanks, next + 1)
      const depth = begin - next - 1
      if (begin >= text.length || depth <= indent || text[begin] === '#') return
      at = next + 1
      lineStart = at
      if (isAtMarker()) return
      at = begin
      key = false
    }
  }

  const leaveOpen = () => {
    if (flow > 0) edits.length = unopened
  }

  const scanToken = () => {
    const first = text[at] ?? ''
    if (isAtMarker()) {
      leaveOpen()
      ;[flow, indent, outer, key] = [0, -1, [], true]
      at += 3
      return
    }
    unroll(column())
    if (flow === 0 && end(indicator) > at) {
      roll(first === ':' && typeof key === 'number' ? key : column())
      key = first !== ':' || typeof key !== 'number'
      at += 1
    } else if (first === '"' || first === "'") {
      beginKey()
      scanQuoted(first)
    } else if (first === '[' || first === '{') {
      beginKey()
      if (flow === 0) unopened = edits.length
      flow += 1
      at += 1
    } else if (flow > 0 && (first === ']' || first === '}')) {
      flow -= 1
      at += 1
    } else if (flow > 0 && (first === ',' || first === ':')) at += 1
    else if (flow === 0 && (first === '|' || first === '>')) scanBlock()
    else if (end(property) > at) {
      beginKey()
      at = end(property)
    } else {
      beginKey()
      scanPlain()
    }
  }

  const scan = () => {
    while (at < text.length) {
      const begin = at
      if (at === lineStart && flow === 0) findTab(at, indent + 1)
      at = end(blanks)
      if (text[at] === '\n') {
        nextLine(flow > 0)
        if (flow === 0) key = true
      } else if (text[at] === '#') {
        if (at === begin && at > lineStart) change(at, 0, ' ')
        at = end(toLineEnd)
      } else if (at === lineStart && text[at] === '%') at = end(toLineEnd)
      else if (at < text.length) scanToken()
    }
    leaveOpen()
    return { edits, tab }
  }
  return { scan }
}
