import { printable } from '../../base/printable.ts'
import type { Definition, Problem, Profile } from '../definition.ts'
import { findFormat } from './formats.ts'
import { replaceMacros, type Macro } from './macro.ts'
import { createMacroValues, type MacroProblem, type MacroValue } from './macro-values.ts'
import { checkPlacements, factsToQuote, findOutside } from './placements.ts'
import { createProblemList, type Report } from './problem-list.ts'
import { parseSourceTexts, type SourceText } from './source-texts.ts'
import type { SystemFacts } from './system-macros.ts'
import {
  createGivenTo,
  parseVariables,
  valueOf,
  type GivenVariable,
  type VariableRules,
} from './variables.ts'

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

export interface RenderEdges {
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
      ...{ place, profileUid: profile.uid, packName, displayName, role, isTemplate },
      content: rendered,
    }))
  })
  return { texts, problems: problems.list() }
}

// What says nothing of a secret, and is found in any text.
const saysNothing = /^(?:true|false|null|\d{1,6})$/

/**
 * What functions of macros have made of the values of sensitive variables, as `upper` or `replace` do, line by line: it is to be masked as the values are.
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

export interface MacroReadingEdges {
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
