import { isCollection } from 'yaml'
import { type Macro, replaceMacros } from './macro.ts'
import { type MacroValue, createMacroValues, type MacroProblem } from './macro-values.ts'
import { plainKind, refusePlain } from '../../base/write-yaml.ts'
import { type Report, createProblemList } from './problem-list.ts'
import { type SourceText, parseSourceTexts } from './sources.ts'
import { readYaml, type MacroSite } from './yaml-text.ts'
import { printable } from '../../base/printable.ts'
import {
  type Definition,
  type Problem,
  type Profile,
  createGivenTo,
  type GivenVariable,
} from '../definition.ts'
import { findFormat } from './formats.ts'
import type { SystemFacts } from './system-macros.ts'
import { parseVariables, valueOf, type VariableRules } from './variables.ts'

/**
 * Reports macros whose value would break the YAML around it or change its type. The rules if the value is known:
 * - no quotes: the whole must still be one scalar, and text must not become a number, boolean or null;
 * - quotes: the value must not contain the quote, a backslash (double quotes) or a line break, which would become a space;
 * - a block scalar (`|`, `>`) or a comment: no line break, since the text after it would not be indented.
 * If only the format is known: a number or boolean alone in double quotes becomes text. Single quotes are the documented way
 * to write a macro as text, so they are not reported.
 * Keys have no types. No message contains a value.
 */
function checkPlacements(source: SourceText, valueOf: (macro: Macro) => MacroValue, report: Report): void {
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
function findOutside({ macros, yaml, isTemplate, content }: SourceText): number[] {
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

/** Blanks around an unquoted value, such as from `nindent`, are not part of it. */
function asPlaced(site: MacroSite, macro: Macro, value: MacroValue): MacroValue {
  if (site.style !== 'plain' || macro.expression?.kind === 'reference' || !isAlone(site, macro)) return value
  return value.text === undefined ? value : { ...value, text: value.text.trim() }
}

/**
 * The macros of a text whose values are written in double quotes: a fact alone and without quotes that readers would take for another type,
 * as the name of a cluster `no` or `1e3`. In a block scalar it is text anyway, unless the block itself is YAML for a program, as `cluster.config`
 * for kubeadm.
 */
function factsToQuote(
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

/** A text of a definition with its macros replaced by values; the rest is unchanged, byte for byte. */
export interface RenderedText {
  /** Place of the original text. */
  readonly place: string
  readonly profileUid: string
  readonly packName: string
  /** Identifies the pack in the profile, together with its name; empty if it has none. */
  readonly displayName: string
  readonly role: 'values' | 'manifest'
  /** Whether it is a manifest that helm has to render; braces in the values of its macros are escaped. */
  readonly isTemplate: boolean
  readonly content: string
}

interface RenderEdges {
  readonly given: readonly GivenVariable[]
  readonly facts: SystemFacts
  /** The result of parseVariables for the same profiles, if the caller has it already. */
  readonly variables?: VariableRules
}

// Characters of one text, and of all together: more than any real cluster needs, and few enough for the memory.
const textLimit = 16_777_216
const totalLimit = 268_435_456

/**
 * Renders values and manifests of all profiles. Problems of macros have the place `place:line:column`; a macro without a
 * value is left as it is. The given values are not validated here: see VariableRules.
 */
export function renderDefinition(
  definition: Definition,
  { given, facts, variables = parseVariables(definition.profiles) }: RenderEdges,
): { texts: RenderedText[]; problems: Problem[] } {
  const problems = createProblemList()
  const sources = parseSourceTexts(definition, problems.report)
  const { report } = problems
  const { profiles } = definition
  const edges = { sources, profiles, variables, facts, report, givenTo: createGivenTo(given) }
  const reading = createMacroReading({ ...edges, isComplete: true })
  reading.check()
  const texts = sources.flatMap((source): RenderedText[] => {
    const { profile, place, packName, displayNames, role, content, macros } = source
    if (profile === undefined) return []
    const isTemplate = isForHelm(source, profile)
    const written = (text: string | undefined) => (isTemplate ? text?.replaceAll('{{', '{{ "{{" }}') : text)
    const valueIn = (macro: Macro) => reading.valueOf(source, macro)
    const inQuotes = factsToQuote(source, valueIn)
    const textIn = (macro: Macro) => {
      const { text } = valueIn(macro)
      return inQuotes.has(macro) ? JSON.stringify(text) : text
    }
    const rendered = reading.isTooLong(source)
      ? content
      : replaceMacros(content, macros, (macro) => written(textIn(macro)))
    return [...displayNames].map((displayName) => ({
      place,
      profileUid: profile.uid,
      packName,
      displayName,
      role,
      isTemplate,
      content: rendered,
    }))
  })
  return { texts, problems: problems.list() }
}

// Values that reveal nothing of a secret, and occur in any text.
const saysNothing = /^(?:true|false|null|\d{1,6})$/

/**
 * Results of functions of macros, as `upper` or `replace`, on the values of sensitive variables, line by line, to be masked as the values are.
 * All macros are read a second time with other values; a line that differs comes from a secret.
 */
export function derivedSecrets(
  definition: Definition,
  { given, facts, variables }: Required<RenderEdges>,
): string[] {
  const isSensitive = new Set<unknown>()
  for (const { rules } of variables.declared)
    for (const { variable } of rules.values()) if (variable.isSensitive === true) isSensitive.add(variable)
  const report = () => undefined
  const sources = parseSourceTexts(definition, report)
  const isComputed = ({ expression }: Macro) => expression !== undefined && expression.kind !== 'reference'
  if (isSensitive.size === 0 || !sources.some(({ macros }) => macros.some(isComputed))) return []
  const givenTo = createGivenTo(given)
  const rulesOf = new Map(variables.declared.map(({ profile, rules }) => [profile, rules]))
  const edges = { sources, profiles: definition.profiles, variables, facts, report, isComplete: true }
  const real = createMacroReading({ ...edges, givenTo })
  const other = createMacroReading({
    ...edges,
    givenTo(profile, name) {
      const value = givenTo(profile, name)
      const rule = rulesOf.get(profile)?.get(name)
      return rule && isSensitive.has(rule.variable) ? changed(valueOf(rule, value)) : value
    },
  })
  const found = sources.flatMap((source) =>
    source.profile === undefined
      ? []
      : source.macros.filter(isComputed).flatMap((macro) => {
          const lines = real.valueOf(source, macro).text?.split('\n') ?? []
          const others = other.valueOf(source, macro).text?.split('\n')
          return lines.filter((line, at) => lines.length !== others?.length || line !== others[at])
        }),
  )
  return [...new Set(found.map((line) => line.trim()))].filter(
    (line) => line !== '' && !saysNothing.test(line),
  )
}

/** A value of which each letter and digit is another one, so that also a part of it is. */
const changed = (text: string): string =>
  text.replace(/[a-z\d]/gi, (sign) => {
    const [first, count] = /\d/.test(sign) ? [48, 10] : sign >= 'a' ? [97, 26] : [65, 26]
    return String.fromCharCode(first + ((sign.charCodeAt(0) - first + 1) % count))
  })

// With a bound, so that a text of braces without an end takes no quadratic time.
const fieldsOfHelm = /\{\{[^{}]{0,2048}\.(?:Values|Release|Capabilities|Chart)\b/

/**
 * Manifests of a pack folder are written for helm. Those in a profile often have braces for another reader, as alerts of Prometheus
 * do, and are rendered only if they ask for something that helm knows.
 */
const isForHelm = ({ isTemplate, place, content }: SourceText, profile: Profile) =>
  isTemplate && (!place.startsWith(`${profile.place}#`) || fieldsOfHelm.test(content))

interface MacroReadingEdges {
  readonly sources: readonly SourceText[]
  readonly profiles: readonly Profile[]
  readonly variables: VariableRules
  readonly facts: SystemFacts
  readonly report: Report
  readonly givenTo: (profile: Profile, name: string) => string | undefined
  /** Whether all values have been given; then each macro must have a value. */
  readonly isComplete: boolean
}

/** The macros of texts with their values. */
export function createMacroReading(edges: MacroReadingEdges) {
  const { sources, profiles, variables, facts, report, givenTo, isComplete } = edges
  const rules = new Map(variables.declared.map((each) => [each.profile, each.rules]))
  const tooLong = new Set<SourceText>()

  const variableOf = (profile: Profile, name: string): MacroValue | undefined => {
    const rule = rules.get(profile)?.get(name)
    if (rule === undefined) return undefined
    const text = valueOf(rule, givenTo(profile, name))
    const kind = findFormat(rule.variable.format)?.kind ?? 'text'
    // When all values have been given, an optional variable without a value is empty.
    const isKnown = text !== '' || (isComplete && rule.variable.required !== true)
    return { text: isKnown ? text : undefined, kind }
  }
  const variableNames = (profile: Profile) => rules.get(profile)?.keys() ?? []
  const reading = { sources, profiles, facts, variableOf, variableNames, report }
  const { valueOf: valueIn } = createMacroValues(reading)

  /** Reports problems of the macros of one text. @returns its length with all values */
  const checkMacros = (source: SourceText): number => {
    const inComments = new Set(findOutside(source))
    let length = source.content.length
    source.macros.forEach((macro, index) => {
      const value = valueIn(source, macro)
      length += value.text?.length ?? 0
      const problem = value.problem ?? (isComplete ? missing(macro, value) : undefined)
      // YAML ignores comments, so a wrong macro in a comment breaks nothing.
      const severity = inComments.has(index) ? 'warning' : problem?.severity
      if (problem) report(problem.code, source.at(macro.braces), problem.message, severity)
    })
    return length
  }

  const check = (): void => {
    let total = 0
    for (const source of sources) {
      if (source.profile === undefined || source.macros.length === 0) continue
      const length = checkMacros(source)
      total += length
      if (length <= textLimit && total <= totalLimit)
        checkPlacements(source, (macro) => valueIn(source, macro), report)
      else {
        tooLong.add(source)
        report(
          'MacroTooLong',
          source.place,
          `would be ${length} characters long, and all texts so far ${total}`,
        )
      }
    }
  }
  return { check, valueOf: valueIn, isTooLong: (source: SourceText) => tooLong.has(source) }
}

function missing({ references }: Macro, { text }: MacroValue): MacroProblem | undefined {
  const asked = references.find(({ kind }) => kind === 'var' || kind === 'system')
  if (text !== undefined || asked === undefined) return undefined
  const name = printable(asked.name)
  const what = asked.kind === 'var' ? `variable ${name} is required` : `${name} is not known`
  return { code: 'MacroUnset', message: `${what} and has no value` }
}
