import { isMask } from '../../base/mask.ts'
import { type GivenVariable, type Variable, type DeclaringProfile, type Problem } from '../definition.ts'
import { findFormat, formatNames } from './formats.ts'
import { type Pattern, type Patterns, createPatterns } from './pattern.ts'
import { nearestName } from '../../base/nearest-name.ts'
import { printable } from '../../base/printable.ts'
import type { DefinitionCode } from './codes.ts'
import { type Report, createProblemList, createSuggest } from './problem-list.ts'

/** The rule for the values of a variable, from its declaration. */
export interface VariableRule {
  readonly variable: Variable
  /** The value if none is given: defaultValue, otherwise the option marked as default; never a mask. */
  readonly default: string | undefined
  /** Why a value that is not empty is refused, as the end of a sentence without the value; undefined if it is accepted. */
  readonly refuse: (value: string, work: Work) => string | undefined
}

/**
 * Steps that are left for one call, so that long values and large patterns together cannot block a host. RE2 does about
 * 10,000 steps in a millisecond. Below 0 no search is started.
 */
export interface Work {
  steps: number
}

// A certificate chain or a kubeconfig has a few KiB.
const valueLimit = 65_536
const shownOptions = 10

/** The rule of one variable. @param pattern its regex. With a refused pattern no value is accepted, since none can be judged. */
export function createRule(variable: Variable, pattern: Pattern | undefined): VariableRule {
  const format = findFormat(variable.format)
  const options =
    variable.inputType === 'dropdown' ? new Set(optionsOf(variable).map(({ value }) => value)) : undefined
  const isMultiline = variable.inputType === 'multiline'

  const refuse = (value: string, work: Work): string | undefined => {
    if (value.length > valueLimit) return `must be at most ${valueLimit} characters long`
    if (options && options.size > 0 && !options.has(value))
      return `must be ${describeOptions(variable, options)}`
    if (!isMultiline && /[\r\n]/.test(value)) return 'must be a single line'
    if (format && !format.accepts(value)) return `must be ${format.expected}`
    if (pattern === undefined) return undefined
    if (pattern.refusal !== undefined) return `has a regex that ${pattern.refusal}: correct the definition`
    work.steps -= pattern.stepsFor(value)
    if (work.steps < 0) return 'is too long for its regex, together with all earlier values'
    return pattern.isFoundIn(value) ? undefined : `must match the regex ${variable.regex ?? ''}`
  }
  return { variable, default: defaultOf(variable), refuse }
}

/** The options of a variable; empty if it has none. */
export function optionsOf(variable: Variable): NonNullable<Variable['options']> {
  return variable.options ?? []
}

/** The value where none is given; undefined if there is none. */
export function defaultOf(variable: Variable): string | undefined {
  if (isMasked(variable, variable.defaultValue)) return undefined
  if (variable.defaultValue !== undefined && variable.defaultValue !== '') return variable.defaultValue
  if (variable.inputType !== 'dropdown') return undefined
  return (
    optionsOf(variable).find((option) => option.default === true && !isMasked(variable, option.value))
      ?.value || undefined
  )
}

/** Whether the export masked this value: it belongs to a sensitive variable and consists of stars only. */
export const isMasked = ({ isSensitive }: Variable, value: string | undefined): boolean =>
  isSensitive === true && value !== undefined && isMask(value)

function describeOptions(variable: Variable, options: ReadonlySet<string>): string {
  // One of them may be the secret.
  if (variable.isSensitive === true) return 'one of its options'
  const shown = [...options].slice(0, shownOptions).join(', ')
  return `one of ${shown}${options.size > shownOptions ? ` and ${options.size - shownOptions} more` : ''}`
}

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

/** The verdict on one variable in the reply of the API. */
export interface ValidatedVariable {
  readonly name: string
  readonly profileUid: string
  readonly profileName: string
  readonly isValid: boolean
  readonly regex: string
  /** Empty if the value is valid; never contains the value. */
  readonly validationFailureReason: string
}

/** The rules of the variables of profiles, for any number of validations. */
export interface VariableRules {
  readonly declared: readonly Declared[]
  /**
   * Judges each given value in the given order, then the default of each declared variable that was not given, in the
   * order of the declarations. The whole is valid if every `isValid` is true. Never throws.
   */
  readonly validate: (given: readonly GivenVariable[]) => ValidatedVariable[]
  /** The same with a limit: uses up steps of `work`. @returns undefined if they do not suffice */
  readonly validateWithin: (given: readonly GivenVariable[], work: Work) => ValidatedVariable[] | undefined
}

// Seconds of RE2 for one call.
const stepLimit = 50_000_000
// Names are compared with every known one; a client may send any number of unknown ones.
const suggestionLimit = 10

/**
 * The rules of the variables of profiles, and problems of their declarations. Patterns are compiled and defaults judged
 * here, which takes seconds at worst.
 */
export function parseVariables(
  profiles: readonly DeclaringProfile[],
  patterns = createPatterns(),
): VariableRules & { readonly problems: readonly Problem[] } {
  const problems = createProblemList()
  checkDeclarations(profiles, patterns, problems.report)
  return { ...createVariableRules(profiles, patterns), problems: problems.list() }
}

/** The rules of the variables of profiles, without a check of their declarations. */
export function createVariableRules(
  profiles: readonly DeclaringProfile[],
  patterns: Patterns,
): VariableRules {
  const declared = parseRules(profiles, patterns)
  const byUid = new Map(declared.map((each) => [each.profile.uid, each]))
  const byName = new Map<string, Declared[]>()
  for (const each of declared) {
    for (const name of each.rules.keys()) {
      const owners = byName.get(name)
      if (owners) owners.push(each)
      else byName.set(name, [each])
    }
  }

  const find = (name: string, uid: string | undefined): { owner?: Declared; reason?: string } => {
    if (name === '') return { reason: 'names no variable' }
    if (uid) {
      const owner = byUid.get(uid)
      return owner ? { owner } : { reason: 'profileUid names no profile of this definition' }
    }
    const owners = byName.get(name) ?? []
    const [owner] = owners
    if (owners.length > 1) return { reason: `is declared by ${owners.length} profiles; give its profileUid` }
    return owner ? { owner } : {}
  }

  const judgeAll = (given: readonly GivenVariable[], work: Work): ValidatedVariable[] => {
    const seen = new Set<VariableRule>()
    const suggest = createSuggest(suggestionLimit)
    const results = given.map(({ name, profileUid, value }) => {
      const { owner, reason } = find(name, profileUid)
      const rule = owner?.rules.get(name)
      if (rule === undefined) {
        const unknown = () => `is not declared${suggest(name, (owner?.rules ?? byName).keys())}`
        return toResult(name, profileUid ?? '', owner, undefined, reason ?? unknown())
      }
      if (seen.has(rule)) return toResult(name, '', owner, rule, 'is given twice')
      seen.add(rule)
      return toResult(name, '', owner, rule, judge(rule, value, work))
    })
    for (const owner of declared) {
      for (const [name, rule] of owner.rules) {
        if (!seen.has(rule)) results.push(toResult(name, '', owner, rule, judge(rule, undefined, work)))
      }
    }
    return results
  }
  return {
    declared,
    validate: (given) => judgeAll(given, { steps: stepLimit }),
    validateWithin(given, work) {
      const results = judgeAll(given, work)
      return work.steps < 0 ? undefined : results
    },
  }
}

/** Why a value is refused; undefined if it is accepted. @param given undefined if no value was given; empty means not set */
function judge(rule: VariableRule, given: string | undefined, work: Work): string | undefined {
  const { required, immutable } = rule.variable
  if (immutable === true) {
    if (rule.default === undefined) return 'is immutable and has no default: correct the definition'
    if (given && given !== rule.default) return 'is immutable: leave its default'
  }
  if (isMasked(rule.variable, given))
    return 'consists of stars only, as a masked value does: give the value itself'
  const value = valueOf(rule, given)
  if (value === '') return required === true ? 'is required' : undefined
  return rule.refuse(value, work)
}

/** The value of a variable: the given one, otherwise its default, otherwise empty. */
export function valueOf(rule: VariableRule, given: string | undefined): string {
  const isLeft = given === undefined || (given === '' && rule.variable.immutable === true)
  return (isLeft ? rule.default : given) ?? ''
}

function toResult(
  name: string,
  givenUid: string,
  owner: Declared | undefined,
  rule: VariableRule | undefined,
  reason: string | undefined,
): ValidatedVariable {
  return {
    name,
    profileUid: owner?.profile.uid ?? givenUid,
    profileName: owner?.profile.name ?? '',
    isValid: reason === undefined,
    regex: rule?.variable.regex ?? '',
    validationFailureReason: reason === undefined ? '' : `${printable(name) || 'this value'} ${reason}`,
  }
}
