import { printable } from '../../../base/printable.ts'
import type { Definition } from '../../../definition/definition.ts'
import {
  createGivenTo,
  createVariableRules,
  valueOf,
  type GivenVariable,
  type VariableRules,
} from '../../../definition/rules/variables.ts'
import { createPatterns } from '../../../definition/rules/pattern.ts'
import type { PreflightProblem } from '../../problem.ts'
import type { PreparedVariable } from '../prepared.ts'

export interface JudgedVariables {
  readonly rules: VariableRules
  readonly variables: readonly PreparedVariable[]
  readonly problems: readonly PreflightProblem[]
}

/** The values of all declared variables, and what is wrong with the given ones. */
export function judgeVariables(
  { profiles }: Pick<Definition, 'profiles'>,
  given: readonly GivenVariable[],
): JudgedVariables {
  const rules = createVariableRules(profiles, createPatterns())
  const problems = rules.validate(given).flatMap(({ isValid, validationFailureReason }, index) => {
    // The given ones come first, in their order.
    const path = index < given.length ? `spec.profileVariables[${index}]` : 'spec.profileVariables'
    if (given[index]?.name === '')
      return [{ ...invalid, path: `${path}.name`, message: `${path}.name is missing: name the variable` }]
    return isValid ? [] : [{ ...invalid, path, message: `variable ${validationFailureReason}` }]
  })
  const givenTo = createGivenTo(given)
  const variables = rules.declared.flatMap(({ profile, rules: own }) =>
    [...own.values()].map((rule): PreparedVariable => {
      const { name, isSensitive = false, required = false } = rule.variable
      const value = valueOf(rule, givenTo(profile, name))
      const missing = required && value === '' ? { missing: `variable ${printable(name)} is required` } : {}
      return { profileUid: profile.uid, name, value, isSensitive, ...missing }
    }),
  )
  return { rules, variables, problems }
}

const invalid = { code: 'VariableInvalid', severity: 'error' } as const
