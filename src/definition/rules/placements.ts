import { isCollection } from 'yaml'
import type { Macro } from './macro.ts'
import type { MacroValue } from './macro-values.ts'
import { plainKind, refusePlain } from '../../base/plain-scalar.ts'
import type { Report } from './problem-list.ts'
import type { SourceText } from './source-texts.ts'
import { readYaml, type MacroSite } from './yaml-text.ts'

/**
 * Reports macros whose value would break the YAML around it or change its type. The rules if the value is known:
 * - no quotes: the whole must still be one scalar, and text must not become a number, boolean or null;
 * - quotes: the value must not contain the quote, a backslash (double quotes) or a line break, which would become a space;
 * - a block scalar (`|`, `>`) or a comment: no line break, since the text after it would not be indented.
 * If only the format is known: a number or boolean alone in double quotes becomes text. Single quotes are the documented way
 * to write a macro as text, so they are not reported.
 * Keys have no types. No message contains a value.
 */
export function checkPlacements(
  source: SourceText,
  valueOf: (macro: Macro) => MacroValue,
  report: Report,
): void {
  const { macros, yaml, at } = source
  const place = ({ braces }: Pick<Macro, 'braces'>) => at(braces)
  for (const site of yaml.sites) {
    const inside = macros.slice(site.first, site.last + 1)
    const [macro] = inside
    if (macro === undefined) continue
    const values = inside.map((each) => asPlaced(site, each, valueOf(each)))
    if (site.style !== 'plain') checkEnclosed(site, inside, values, place, report)
    const isWhole = inside.length === 1 && isAlone(site, macro)
    if (site.style === 'plain') checkPlain(source, site, inside, values, isWhole, report)
    const kind = values[0]?.kind
    if (site.style === 'double' && isWhole && !site.isKey && (kind === 'number' || kind === 'boolean'))
      report(
        'MacroTypeChanged',
        place(macro),
        `a ${kind} in quotes becomes text; remove the quotes if it must stay a ${kind}`,
      )
  }
  for (const index of findOutside(source)) {
    const macro = macros[index]
    if (macro && hasLineBreak(valueOf(macro)))
      report('MacroBreaksYaml', place(macro), 'the value has a line break, which would end the comment')
  }
}

/** Indices of the macros in comments; empty if the YAML could not be parsed. */
export function findOutside({ macros, yaml, isTemplate, content }: SourceText): number[] {
  if (isTemplate) return findInCommentLines(content, macros)
  if (macros.length === 0 || yaml.problems.some(({ code }) => code === 'YamlInvalid')) return []
  const outside: number[] = []
  let next = 0
  for (const { first, last } of yaml.sites) {
    for (; next < first; next += 1) outside.push(next)
    next = Math.max(next, last + 1)
  }
  for (; next < macros.length; next += 1) outside.push(next)
  return outside
}

/** In a template, only lines that are comments as a whole can be recognized. */
function findInCommentLines(content: string, macros: readonly Macro[]): number[] {
  const found: number[] = []
  let lineEnd = -1
  let isComment = false
  macros.forEach(({ start }, index) => {
    if (start > lineEnd) {
      const lineStart = content.lastIndexOf('\n', start) + 1
      const next = content.indexOf('\n', start)
      lineEnd = next === -1 ? content.length : next
      commentLine.lastIndex = lineStart
      isComment = commentLine.test(content)
    }
    if (isComment) found.push(index)
  })
  return found
}

const commentLine = /[ \t]*#/y

/** Blanks around an unquoted value, such as those of `nindent`, are not part of it. */
function asPlaced(site: MacroSite, macro: Macro, value: MacroValue): MacroValue {
  if (site.style !== 'plain' || macro.expression?.kind === 'reference' || !isAlone(site, macro)) return value
  return value.text === undefined ? value : { ...value, text: value.text.trim() }
}

/**
 * The macros of a text whose values are written in double quotes: a fact alone and without quotes that readers would take for another type,
 * as the name of a cluster `no` or `1e3`. In a block scalar it is text anyway, unless the block itself is YAML for a program, as `cluster.config`
 * for kubeadm.
 */
export function factsToQuote(
  { macros, yaml, isTemplate, content }: SourceText,
  valueOf: (macro: Macro) => MacroValue,
): ReadonlySet<Macro> {
  const isToQuote = (macro: Macro) => isOtherType(valueOf(macro))
  // Blocks are read for those alone.
  if (!macros.some(isToQuote)) return new Set()
  const alone = isTemplate
    ? macros.filter((macro) => isAloneInLine(content, macro))
    : aloneIn(content, macros, yaml.sites)
  return new Set(alone.filter(isToQuote))
}

/** Blocks within blocks are parsed once for each that they are in. */
const deepestBlock = 4

/**
 * The macros that are a whole scalar without quotes, also in a block that is a map or a list of YAML.
 * @param depth blocks that the text is in
 */
function aloneIn(content: string, macros: readonly Macro[], sites: readonly MacroSite[], depth = 0): Macro[] {
  return sites.flatMap((site) => {
    const inside = macros.slice(site.first, site.last + 1)
    const [macro] = inside
    if (macro && inside.length === 1 && site.style === 'plain' && isAlone(site, macro)) return [macro]
    return site.style === 'block' && depth < deepestBlock ? aloneInBlock(content, inside, site, depth) : []
  })
}

function aloneInBlock(
  content: string,
  macros: readonly Macro[],
  { start, end }: MacroSite,
  depth: number,
): Macro[] {
  // The lines of a folded one are another text.
  const from = content.indexOf('\n', start) + 1
  if (content[start] !== '|' || from === 0 || from >= end) return []
  const text = content.slice(from, end)
  const moved = macros.map((macro) => ({ ...macro, start: macro.start - from, end: macro.end - from }))
  const others: unknown[] = []
  const { problems, sites } = readYaml(text, moved, ({ contents }) => {
    if (contents !== null && !isCollection(contents)) others.push(contents)
  })
  if (others.length > 0 || problems.length > 0) return []
  const found = new Set(aloneIn(text, moved, sites, depth + 1))
  return macros.filter((_macro, index) => moved[index] !== undefined && found.has(moved[index]))
}

const isOtherType = ({ isFact, text }: MacroValue) =>
  isFact === true && text !== undefined && text !== '' && plainKind(text) !== 'text'

/** Whether a macro in a template of helm, which is no YAML yet, is the whole value of a field or an item. */
function isAloneInLine(content: string, { start, end }: Macro): boolean {
  const before = content.slice(content.lastIndexOf('\n', start - 1) + 1, start)
  const next = content.indexOf('\n', end)
  const after = content.slice(end, next === -1 ? content.length : next)
  return /(?:[:-])[ \t]+$/.test(before.slice(-20)) && /^[ \t]*\r?$/.test(after.slice(0, 20))
}

function isAlone({ style, start, end }: MacroSite, macro: Macro): boolean {
  const quotes = style === 'plain' ? 0 : 1
  return macro.start === start + quotes && macro.end === end - quotes
}

const hasLineBreak = ({ text }: MacroValue) => text !== undefined && /[\r\n]/.test(text)

const enclosed = {
  single: { pattern: /['\r\n]/, what: "a ' or a line break, inside single quotes" },
  double: { pattern: /["\\\r\n]/, what: 'a ", a backslash or a line break, inside double quotes' },
  block: { pattern: /[\r\n]/, what: 'a line break, after which the text would not be indented' },
} as const

// All but tab, line feed and carriage return: YAML 1.2, production c-printable.
// eslint-disable-next-line no-control-regex
const unprintable = /[\0-\x08\v\f\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]/u

function checkEnclosed(
  { style }: MacroSite,
  macros: readonly Macro[],
  values: readonly MacroValue[],
  place: (macro: Macro) => string,
  report: Report,
): void {
  if (style === 'plain') return
  const { pattern, what } = enclosed[style]
  macros.forEach((macro, index) => {
    const text = values[index]?.text
    if (text === undefined) return
    if (pattern.test(text)) report('MacroBreaksYaml', place(macro), `the value has ${what}`)
    else if (unprintable.test(text))
      report('MacroBreaksYaml', place(macro), 'the value has a control character')
  })
}

const isQuoted = /^(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')$/

/** A scalar without quotes is checked as a whole, with all values in it. */
function checkPlain(
  { content, at }: SourceText,
  site: MacroSite,
  macros: readonly Macro[],
  values: readonly MacroValue[],
  isWhole: boolean,
  report: Report,
): void {
  const place = at(macros[0]?.braces ?? site.start)
  const broken = values.findIndex(
    (value) => hasLineBreak(value) || (value.text !== undefined && unprintable.test(value.text)),
  )
  const culprit = macros[broken]
  if (culprit) {
    report(
      'MacroBreaksYaml',
      at(culprit.braces),
      'the value has a line break or control character, outside quotes',
    )
    return
  }
  if (values.some(({ text }) => text === undefined)) return
  const parts: string[] = []
  let end = site.start
  macros.forEach((macro, index) => {
    parts.push(content.slice(end, macro.start), values[index]?.text ?? '')
    end = macro.end
  })
  // Line breaks that the author wrote are folded to spaces by YAML.
  const text = [...parts, content.slice(end, site.end)].join('').replace(/[ \t]*[\r\n]\s*/g, ' ')
  // The result of a function such as `quote`, which adds its own quotes.
  if (isWhole && macros[0]?.expression?.kind !== 'reference' && isQuoted.test(text)) return
  const refusal = refusePlain(text, site.isInFlow)
  if (refusal !== undefined) {
    report('MacroBreaksYaml', place, `with its value the text has ${refusal}; put it in quotes`)
    return
  }
  const [kind, expected] = [plainKind(text), isWhole ? values[0]?.kind : 'text']
  // It is written in quotes.
  if (isWhole && values[0] && isOtherType(values[0])) return
  if (!site.isKey && expected === 'text' && kind !== 'text')
    report(
      'MacroTypeChanged',
      place,
      `text without quotes becomes a ${kind}; put it in quotes if it must stay text`,
    )
}
