import { isMask } from '../../base/mask.ts'
import type { Variable } from '../definition.ts'
import { findFormat } from './formats.ts'
import type { Pattern } from './pattern.ts'

/** What a value must be, by everything its declaration says. */
export interface VariableRule {
  readonly variable: Variable
  /** What it is when no value is given: defaultValue, or else the option marked as default; never a mask. */
  readonly default: string | undefined
  /** Why a value that is not empty is refused, as a sentence without the value itself; undefined: it is taken. */
  readonly refuse: (value: string, work: Work) => string | undefined
}

/**
 * Steps that are left for one call, of which RE2 takes some 10,000 in a millisecond, so that long values and large patterns
 * together cannot hold up a host. Below 0 nothing is searched any more.
 */
export interface Work {
  steps: number
}

// A certificate chain or a kubeconfig is some KiB.
const valueLimit = 65_536
const optionsTold = 10

/** The rules of one variable; `pattern` is its regex. One that is refused itself takes no value, as none can be judged. */
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
    if (work.steps < 0) return 'is too long for its regex, together with all those before it'
    return pattern.isFoundIn(value) ? undefined : `must match the regex ${variable.regex ?? ''}`
  }
  return { variable, default: defaultOf(variable), refuse }
}

/** Options, none of them without a value. */
export function optionsOf(variable: Variable): NonNullable<Variable['options']> {
  return variable.options ?? []
}

function defaultOf(variable: Variable): string | undefined {
  if (isMasked(variable, variable.defaultValue)) return undefined
  if (variable.defaultValue !== undefined && variable.defaultValue !== '') return variable.defaultValue
  if (variable.inputType !== 'dropdown') return undefined
  return (
    optionsOf(variable).find((option) => option.default === true && !isMasked(variable, option.value))
      ?.value || undefined
  )
}

/** Whether an export has a mask in the place of this value: only stars, of a sensitive variable. */
export const isMasked = ({ isSensitive }: Variable, value: string | undefined): boolean =>
  isSensitive === true && value !== undefined && isMask(value)

function describeOptions(variable: Variable, options: ReadonlySet<string>): string {
  // One of them may be the secret.
  if (variable.isSensitive === true) return 'one of its options'
  const told = [...options].slice(0, optionsTold).join(', ')
  return `one of ${told}${options.size > optionsTold ? ` and ${options.size - optionsTold} more` : ''}`
}
