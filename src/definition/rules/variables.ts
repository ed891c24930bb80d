import { printable } from '../../base/printable.ts'
import type { DeclaringProfile, Problem } from '../definition.ts'
import { checkDeclarations, parseRules, type Declared } from './declarations.ts'
import { createPatterns, type Patterns } from './pattern.ts'
import { createProblemList } from './problem-list.ts'
import { createSuggest } from './suggestion.ts'
import { isMasked, type VariableRule, type Work } from './variable-rule.ts'

/** A value from a client. Without `profileUid`, it belongs to the only profile that declares the name. */
export interface GivenVariable {
  readonly name: string
  readonly profileUid?: string
  readonly value: string
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

/** Finds what was given to a variable of a profile: with the uid of the profile, otherwise without one. */
export function createGivenTo(given: readonly GivenVariable[]) {
  const values = new Map(given.map((each) => [`${each.profileUid ?? ''}\0${each.name}`, each.value]))
  return ({ uid }: Pick<DeclaringProfile, 'uid'>, name: string): string | undefined =>
    values.get(`${uid}\0${name}`) ?? values.get(`\0${name}`)
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
