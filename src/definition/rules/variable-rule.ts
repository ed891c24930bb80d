import { isMask } from '../../base/mask.ts'
import type { Variable } from '../definition.ts'
import { findFormat } from './formats.ts'
import type { Pattern } from './pattern.ts'

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
