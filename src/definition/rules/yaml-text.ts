import { Composer, isAlias, isCollection, isMap, isNode, isPair, isScalar, Lexer, Parser } from 'yaml'
import type { Alias, CST, Document, Node, Pair, Scalar } from 'yaml'
import type { Macro, Masked } from './macro.ts'
import { toStrictYaml } from './lenient-yaml.ts'
import { maskMacros } from './macro.ts'
import { exactDigits, parsePlain } from '../../base/plain-scalar.ts'

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

/** What a node adds to the values of its document; a long text counts as many, since aliases multiply it too. */
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

/** With what the tags of YAML itself begin. */
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
