import {
  Composer,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  Lexer,
  Parser,
  type Alias,
  type CST,
  type Document,
  type Node,
  type Pair,
  type Scalar,
} from 'yaml'
import { type Macro, type Masked, maskMacros } from './macro.ts'
import { exactDigits, parsePlain } from '../../base/write-yaml.ts'

/** A text in strict YAML 1.2, with the original positions of its characters. */
interface StrictYaml {
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

/** A scalar that contains macros. */
export interface MacroSite {
  readonly style: 'plain' | 'single' | 'double' | 'block'
  readonly start: number
  readonly end: number
  readonly isKey: boolean
  /** Inside [] or {}. */
  readonly isInFlow: boolean
  /** Indices of the first and the last macro in it. */
  readonly first: number
  readonly last: number
}

export interface YamlProblem {
  readonly code: 'YamlInvalid' | 'YamlKeyTwice' | 'YamlAliasInvalid' | 'YamlTooLarge'
  readonly offset: number
  readonly message: string
}

/** The result of parsing a text. Its documents are not kept after `onDocument`. */
export interface YamlText {
  readonly problems: readonly YamlProblem[]
  /** Scalars that contain macros, in the order of the text; all other macros are in comments. */
  readonly sites: readonly MacroSite[]
  readonly masked: Masked
}

const problemLimit = 20
// Characters that libyaml and its descendants refuse, unpaired surrogates among them.
const unreadable = /[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u
// A hundred times the nodes of the largest manifests.
const nodeLimit = 5_000_000
// Words, marks and line ends. Each costs up to 7 microseconds, so that a text of any size takes at most 5 s of CPU; the 4 MB of all definitions of
// a large operator have half as many.
const tokenLimit = 700_000

/**
 * Parses YAML 1.2 with the extensions of Helm and kubectl: any number of documents, with each macro as a word. The
 * documents are walked one by one and never converted to objects, so neither aliases nor keys such as `__proto__` can do
 * harm. Ranges of nodes are offsets in `text`. Never throws.
 * @param onDocument called with each document that has no errors
 */
export function readYaml(
  text: string,
  macros: readonly Macro[],
  onDocument: (document: Document, masked: Masked) => void = () => undefined,
): YamlText {
  const masked = maskMacros(text, macros)
  const strict = toStrictYaml(masked.text)
  const problems: YamlProblem[] = []
  const sites: MacroSite[] = []
  const say = (problem: YamlProblem) => {
    if (problems.length < problemLimit) problems.push(problem)
  }
  const unread = unreadable.exec(masked.text)
  if (unread) {
    const code = (unread[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
    const message = `contains the control character U+${code}; write it as an escape in double quotes`
    say({ code: 'YamlInvalid', offset: unread.index, message })
  }
  // Duplicate keys are found below, because the library compares each key with every other one.
  const composer = new Composer({ prettyErrors: false, uniqueKeys: false, merge: false, logLevel: 'silent' })
  try {
    for (const document of composer.compose(parse(strict.text), false, strict.text.length)) {
      // Its warnings concern unknown tags and versions, which other readers ignore.
      const { errors } = document
      for (const { message, pos } of errors)
        say({ code: 'YamlInvalid', offset: strict.originalOf(pos[0]), message: inWords(message) })
      walk(document.contents, { macros, sites, say, originalOf: strict.originalOf })
      if (errors.length === 0) onDocument(document, masked)
    }
  } catch (error) {
    if (error instanceof TooManyTokens) {
      const message = `has more than ${tokenLimit} words and marks; divide it into several files`
      return {
        problems: [{ code: 'YamlTooLarge', offset: strict.originalOf(error.offset), message }],
        sites,
        masked,
      }
    }
    // The library recurses; no real text is nested so deeply.
    if (!(error instanceof RangeError)) throw error
    say({ code: 'YamlInvalid', offset: 0, message: tooDeep })
  }
  if (problems.length === 0 && strict.tab !== undefined)
    say({ code: 'YamlInvalid', offset: strict.tab, message: 'has a tab where only spaces are allowed' })
  return { problems, sites, masked }
}

class TooManyTokens extends Error {
  readonly offset: number
  constructor(offset: number) {
    super('too many tokens')
    this.offset = offset
  }
}

/** `Parser.parse`, up to `tokenLimit`. @throws TooManyTokens */
function* parse(text: string): Generator<CST.Token> {
  const parser = new Parser()
  let [count, offset] = [0, 0]
  for (const lexeme of new Lexer().lex(text)) {
    count += 1
    if (count > tokenLimit) throw new TooManyTokens(Math.min(offset, text.length))
    offset += lexeme.length
    yield* parser.next(lexeme)
  }
  yield* parser.end()
}

const tooDeep = 'is nested too deeply'
/** The library reports its own stack overflow with the message of V8. */
const inWords = (message: string) => (message.startsWith('Maximum call stack') ? tooDeep : message)

interface Step {
  readonly node: unknown
  readonly isKey: boolean
  readonly isInFlow: boolean
  /** Set when the node is left: the value of `expanded` when it was entered. */
  readonly leaving?: number
}

interface Walk {
  readonly macros: readonly Macro[]
  readonly sites: MacroSite[]
  readonly say: (problem: YamlProblem) => void
  readonly originalOf: (offset: number) => number
}

/** Walks a document once, without recursion: finds sites and duplicate keys, and counts the values of its aliases. */
function walk(root: unknown, { macros, sites, say, originalOf }: Walk): void {
  const steps: Step[] = [{ node: root, isKey: false, isInFlow: false }]
  const anchors = new Map<string, number | 'open'>()
  let expanded = 0
  let isReported = false
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    const { node, isKey, isInFlow, leaving } = step
    if (leaving === undefined && isNode(node) && node.range) {
      const [start, end, whole] = node.range
      node.range = [originalOf(start), originalOf(end), originalOf(whole)]
    }
    if (isAlias(node)) expanded += followAlias(node, anchors, say)
    if (isScalar(node)) findSite(node, isKey, isInFlow, macros, sites)
    if (leaving === undefined) expanded += weightOf(node)
    const anchor = isScalar(node) || isCollection(node) ? node.anchor : undefined
    if (leaving !== undefined || isScalar(node)) {
      if (anchor !== undefined)
        anchors.set(anchor, leaving === undefined ? weightOf(node) : expanded - leaving)
    } else if (isCollection(node)) {
      if (anchor !== undefined) anchors.set(anchor, 'open')
      if (isMap(node)) findKeysTwice(node.items, originalOf, say)
      const inFlow = isInFlow || node.flow === true
      steps.push({ node, isKey, isInFlow, leaving: expanded })
      for (const item of node.items.toReversed()) {
        if (isPair(item)) steps.push({ node: item.value, isKey: false, isInFlow: inFlow })
        steps.push({ node: isPair(item) ? item.key : item, isKey: isPair(item), isInFlow: inFlow })
      }
    }
    if (expanded > nodeLimit && !isReported) {
      isReported = true
      say({
        code: 'YamlTooLarge',
        offset: offsetOf(node),
        message: `expands to more than ${nodeLimit} values`,
      })
    }
  }
}

/** Number of values that a node adds to its document; a long text counts as many, since aliases multiply it too. */
const weightOf = (node: unknown): number =>
  isScalar(node) && typeof node.value === 'string' ? 1 + (node.value.length >>> 6) : 1

/** The number of values that an alias expands to. */
function followAlias(
  alias: Alias,
  anchors: ReadonlyMap<string, number | 'open'>,
  say: (problem: YamlProblem) => void,
) {
  const size = anchors.get(alias.source)
  if (typeof size === 'number') return size
  const message =
    size === 'open'
      ? 'is an alias inside the node that it refers to'
      : 'is an alias without an anchor before it'
  say({ code: 'YamlAliasInvalid', offset: offsetOf(alias), message })
  return 0
}

/** The keys have not been walked yet, so their ranges are not yet offsets in the original text. */
function findKeysTwice(
  pairs: readonly Pair[],
  originalOf: (offset: number) => number,
  say: (problem: YamlProblem) => void,
): void {
  if (pairs.length < 2) return
  const seen = new Set<unknown>()
  for (const { key } of pairs) {
    if (!isScalar(key)) continue
    const name = nameOf(key)
    if (name !== undefined && seen.has(name))
      say({
        code: 'YamlKeyTwice',
        offset: originalOf(offsetOf(key)),
        message: 'repeats a key of this mapping',
      })
    seen.add(name)
  }
}

/**
 * The value of a scalar for readers of Helm and kubectl: text that is not quoted, or has the tag of a type, may be of another type.
 * @returns undefined where the text does not fit its tag, which they refuse
 */
export function scalarOf({ value, source = '', type, tag }: Scalar): unknown {
  if (tag === undefined) return type === 'PLAIN' ? parsePlain(source) : value
  const wanted = tag.startsWith(standardTag) ? tag.slice(standardTag.length) : ''
  if (!['int', 'float', 'bool', 'null'].includes(wanted)) return value
  const plain = parsePlain(source)
  const isWhole = typeof plain === 'number' && exactDigits(source) !== undefined
  const found = { number: isWhole ? 'int' : 'float', boolean: 'bool', object: 'null', string: '' }[
    typeof plain as 'number' | 'boolean' | 'object' | 'string'
  ]
  return found === wanted || (isWhole && wanted === 'float') ? plain : undefined
}

/** Prefix of the tags of YAML itself. */
export const standardTag = 'tag:yaml.org,2002:'

/**
 * The name of a key for the same readers, which convert all keys to text: `on` is `true`, `1` is `"1"`, `1e20` is `1e+20`.
 * @returns undefined for a key that they refuse: null, and a whole number of more than 63 bits
 */
export function nameOf(key: Scalar): string | undefined {
  const value = scalarOf(key)
  if (typeof value === 'string' || typeof value === 'boolean') return String(value)
  if (typeof value !== 'number') return undefined
  const digits = key.tag === `${standardTag}float` ? undefined : exactDigits(key.source ?? '')
  if (digits === undefined) return nameOfFloat(value)
  return BigInt(digits) < 1n << 63n ? digits : undefined
}

/** As strconv.FormatFloat(value, 'g', -1, 32) of Go, with the infinite numbers as YAML writes them. */
function nameOfFloat(value: number): string {
  const single = Math.fround(value)
  if (Number.isNaN(single)) return '.nan'
  if (!Number.isFinite(single)) return single > 0 ? '.inf' : '-.inf'
  if (Object.is(single, -0)) return '-0'
  const shortest = Array.from({ length: 9 }, (_, digits) => single.toExponential(digits)).find(
    (text) => Math.fround(Number(text)) === single,
  )
  const [mantissa = '', exponent = ''] = (shortest ?? '').split('e')
  const power = Number(exponent)
  if (power >= -4 && power < 6) return String(Number(shortest))
  return `${mantissa}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
}

const styles = {
  QUOTE_SINGLE: 'single',
  QUOTE_DOUBLE: 'double',
  BLOCK_LITERAL: 'block',
  BLOCK_FOLDED: 'block',
} as const

function findSite(
  node: Scalar,
  isKey: boolean,
  isInFlow: boolean,
  macros: readonly Macro[],
  sites: MacroSite[],
): void {
  const [start, end] = node.range ?? [0, 0]
  const first = firstFrom(macros, start)
  if ((macros[first]?.start ?? Infinity) >= end) return
  const last = firstFrom(macros, end) - 1
  const style = Object.hasOwn(styles, node.type ?? '') ? styles[node.type as keyof typeof styles] : 'plain'
  sites.push({ style, start, end, isKey, isInFlow, first, last })
}

/** The index of the first macro at or after an offset. */
function firstFrom(macros: readonly Macro[], offset: number): number {
  let [low, high] = [0, macros.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((macros[middle]?.start ?? 0) < offset) low = middle + 1
    else high = middle
  }
  return low
}

function offsetOf(node: unknown): number {
  return (node as Node | null)?.range?.[0] ?? 0
}
