import { nearestName } from '../../base/nearest-name.ts'
import { printable } from '../../base/printable.ts'
import type { DeclaringProfile, Variable } from '../definition.ts'
import type { DefinitionCode } from './codes.ts'
import { findFormat, formatNames } from './formats.ts'
import type { Pattern, Patterns } from './pattern.ts'
import type { Report } from './problem-list.ts'
import { createRule, isMasked, optionsOf, type VariableRule } from './variable-rule.ts'

/** The variables of one profile, ready to judge values. */
export interface Declared {
  readonly profile: DeclaringProfile
  /** By name. If a name is declared twice, the first declaration counts. */
  readonly rules: ReadonlyMap<string, VariableRule>
}

const inputTypes = ['text', 'dropdown', 'multiline']
const nameLimit = 256
// Steps of RE2 for all defaults together.
const defaultSteps = 200_000_000
// The daemon reads the variables for each validation, and replies with all of them.
const countLimit = 2_000
const textLimit = 4_194_304

/** The rules of all profiles. */
export function parseRules(profiles: readonly DeclaringProfile[], patterns: Patterns): Declared[] {
  return profiles.map((profile) => {
    const rules = new Map<string, VariableRule>()
    for (const variable of profile.variables)
      if (!rules.has(variable.name))
        rules.set(variable.name, createRule(variable, patternOf(variable, patterns)))
    return { profile, rules }
  })
}

const patternOf = ({ regex }: Variable, patterns: Patterns): Pattern | undefined =>
  regex ? patterns.find(regex) : undefined

/** Reports problems of the declarations themselves. */
export function checkDeclarations(
  profiles: readonly DeclaringProfile[],
  patterns: Patterns,
  report: Report,
): void {
  if (!isModest(profiles, report)) return
  const work = { steps: defaultSteps }
  for (const { place, variables } of profiles) {
    const seen = new Set<string>()
    variables.forEach((variable, index) => {
      const say = (code: DefinitionCode, message: string) =>
        report(code, `${place}#spec.variables[${index}]`, `variable ${printable(variable.name)} ${message}`)
      const pattern = patternOf(variable, patterns)
      if (pattern?.refusal !== undefined)
        say('VariablePatternInvalid', `has a regex that ${printable(pattern.refusal)}`)
      if (seen.has(variable.name)) say('VariableTwice', 'is declared twice; remove one of them')
      seen.add(variable.name)
      checkTokens(variable, say)
      // With a refused pattern, options and defaults are checked by the other rules only.
      const rule = createRule(variable, pattern?.refusal === undefined ? pattern : undefined)
      if (variable.inputType === 'dropdown') checkOptions(rule, work, say)
      else if (optionsOf(variable).length > 0)
        say('VariableOptionsUnused', 'has options but is not a dropdown; set inputType to dropdown')
      checkDefault(rule, work, say)
    })
  }
}

/** Whether the variables are so few and short that they can be checked one by one. */
function isModest(profiles: readonly DeclaringProfile[], report: Report): boolean {
  let [count, length] = [0, 0]
  for (const { place, variables } of profiles) {
    count += variables.length
    length += JSON.stringify(variables).length
    const what =
      count > countLimit
        ? `${count} variables; ${countLimit} are allowed`
        : `variables of ${length} characters, as JSON; ${textLimit} are allowed`
    if (count > countLimit || length > textLimit) {
      report('VariablesTooLarge', `${place}#spec.variables`, `up to here the definition has ${what}`)
      return false
    }
  }
  return true
}

type Say = (code: DefinitionCode, message: string) => void

function checkTokens({ name, format, inputType }: Variable, say: Say): void {
  if (!/^[^\s{}|]+$/.test(name) || name.length > nameLimit)
    say('VariableNameInvalid', `needs a name without spaces, braces and |, of 1 to ${nameLimit} characters`)
  if (findFormat(format) === undefined)
    say('VariableFormatUnknown', `has an unknown format ${suggest(format ?? '', formatNames)}`)
  if (inputType !== undefined && !inputTypes.includes(inputType))
    say('VariableInputTypeUnknown', `has an unknown inputType ${suggest(inputType, inputTypes)}`)
}

function suggest(token: string, known: readonly string[]): string {
  const near = nearestName(token, known)
  return `${printable(token)}; ${near === undefined ? `known are ${known.join(', ')}` : `did you mean ${near}?`}`
}

function checkOptions(rule: VariableRule, work: { steps: number }, say: Say): void {
  const options = optionsOf(rule.variable)
  if (options.length === 0) say('VariableOptionsInvalid', 'is a dropdown without options; add at least one')
  const seen = new Set<string>()
  options.forEach(({ value }, index) => {
    if (value === '') say('VariableOptionsInvalid', `has no value in options[${index}]`)
    else if (isMasked(rule.variable, value))
      say(
        'VariableDefaultMasked',
        `has a mask of stars instead of a value in options[${index}]; write the value`,
      )
    else if (seen.has(value))
      say('VariableOptionsInvalid', `has the value of options[${index}] twice; remove one of them`)
    seen.add(value)
    const refusal = value === '' || isMasked(rule.variable, value) ? undefined : rule.refuse(value, work)
    if (refusal !== undefined)
      say('VariableDefaultInvalid', `has a value in options[${index}] that ${refusal}`)
  })
  const defaults = new Set(options.filter((option) => option.default === true).map(({ value }) => value))
  if (rule.variable.defaultValue) defaults.add(rule.variable.defaultValue)
  if (defaults.size > 1) say('VariableOptionsInvalid', 'has more than one default; keep one')
}

function checkDefault(rule: VariableRule, work: { steps: number }, say: Say): void {
  const { hidden, required, immutable, defaultValue } = rule.variable
  if (isMasked(rule.variable, defaultValue))
    say(
      'VariableDefaultMasked',
      'has a mask of stars as its default, which counts as not set; write the default, or give the value when the cluster is created',
    )
  if (rule.default === undefined) {
    if (immutable === true) say('VariableDefaultMissing', 'is immutable and has no defaultValue; add it')
    else if (hidden === true && required === true)
      say('VariableDefaultMissing', 'is hidden and required and has no defaultValue; add it')
    return
  }
  const refusal = rule.refuse(rule.default, work)
  if (refusal !== undefined) say('VariableDefaultInvalid', `has a default that ${refusal}`)
}
