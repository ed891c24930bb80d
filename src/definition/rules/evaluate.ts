import type { TemplateFunction } from './functions/define.ts'
import { templateFunctions } from './functions/table.ts'
import {
  holdToLimit,
  isDict,
  isEmpty,
  isList,
  kindOf,
  Refusal,
  textOf,
  type Value,
} from './functions/value.ts'
import type { Expression, Reference } from './expression.ts'

/** A value, or no value: `later`, since it is not known yet, or never on this host. */
export type Known = { readonly value: Value } | { readonly missing: 'later' | 'never' }

/** What an expression comes to, or which function refuses what it is given. */
export type Evaluated = Known | { readonly refusal: string }

type Choose = (values: readonly Known[]) => Known

const nothing: Known = { value: null }
/** What is never there counts as empty where a function asks whether it is. */
const asEmpty = (known: Known): Known => ('missing' in known && known.missing === 'never' ? nothing : known)
const isChosen = (known: Known) => 'missing' in known || !isEmpty(known.value)

/** Of several values the first that is there, or the last. */
const firstPresent: Choose = (values) => values.map(asEmpty).find(isChosen) ?? nothing

function takeFirst(isTaken: (known: Known) => boolean): Choose {
  return (values) => values.find((known) => 'missing' in known || isTaken(known)) ?? values.at(-1) ?? nothing
}

// Functions that may leave some of their values aside, so that these need not be known.
const choices: ReadonlyMap<
  string,
  { readonly least: number; readonly most: number; readonly choose: Choose }
> = new Map([
  ['default', { least: 1, most: 2, choose: ([other = nothing, given = nothing]) => firstOr(given, other) }],
  ['coalesce', { least: 0, most: Infinity, choose: firstPresent }],
  ['and', { least: 1, most: Infinity, choose: takeFirst((known) => !isChosen(known)) }],
  ['or', { least: 1, most: Infinity, choose: takeFirst(isChosen) }],
  ['ternary', { least: 3, most: 3, choose: chooseBranch }],
])

function firstOr(given: Known, other: Known): Known {
  const present = asEmpty(given)
  return isChosen(present) ? present : other
}

function chooseBranch([yes = nothing, no = nothing, test = nothing]: readonly Known[]): Known {
  if ('missing' in test) return test
  if (typeof test.value !== 'boolean') throw new Refusal(`takes a boolean, it is given ${kindOf(test.value)}`)
  return test.value ? yes : no
}

/** How many values a function takes; undefined: no function has that name. */
export const countsOf = (name: string): Pick<TemplateFunction, 'least' | 'most'> | undefined =>
  choices.get(name) ?? templateFunctions.get(name)

export const functionNames: readonly string[] = [...choices.keys(), ...templateFunctions.keys()]

export interface EvaluationEdges {
  readonly valueOf: (reference: Reference) => Known
  /** Is told how many characters each function makes; may end the work by a Refusal. */
  readonly spend: (length: number) => void
}

/** What an expression comes to. Never throws. */
export function evaluate(expression: Expression, { valueOf, spend }: EvaluationEdges): Evaluated {
  const visit = (each: Expression): Known => {
    switch (each.kind) {
      case 'literal':
        return { value: each.value }
      case 'reference':
        return valueOf(each.reference)
      case 'field':
        return readField(visit(each.of), each.name)
      case 'call':
        return call(each.name, each.values.map(visit), spend)
    }
  }
  try {
    return visit(expression)
  } catch (error) {
    if (error instanceof Refusal) return { refusal: error.message }
    throw error
  }
}

function call(name: string, values: readonly Known[], spend: (length: number) => void): Known {
  try {
    const choice = choices.get(name)
    if (choice) return choice.choose(values)
    const missing = values.flatMap((known) => ('missing' in known ? [known] : []))
    if (missing.length > 0) return missing.find((known) => known.missing === 'later') ?? missing[0] ?? nothing
    const value = templateFunctions
      .get(name)
      ?.call(values.map((known) => ('value' in known ? known.value : null)))
    if (value === undefined) throw new Refusal('is no function')
    holdToLimit(sizeOf(value))
    spend(name.length + sizeOf(value))
    return { value }
  } catch (error) {
    if (error instanceof Refusal && !error.message.startsWith('function '))
      throw new Refusal(`function ${name} ${error.message}`, { cause: error })
    throw error
  }
}

function sizeOf(value: Value): number {
  if (typeof value === 'string') return value.length
  return isList(value) ? value.reduce((sum: number, each) => sum + 1 + sizeOf(each), 0) : 0
}

const versionFields: readonly string[] = ['major', 'minor', 'patch', 'prerelease', 'metadata', 'original']

/** `.Major` of a version, `._0` of what `split` gives. */
function readField(known: Known, name: string): Known {
  if ('missing' in known) return known
  const { value } = known
  if (isDict(value)) return { value: value.get(name) ?? '' }
  const field = `${name.slice(0, 1).toLowerCase()}${name.slice(1)}`
  if (typeof value === 'object' && value !== null && !isList(value)) {
    if (name === 'String') return { value: value.text }
    if (/^[A-Z]/.test(name) && versionFields.includes(field)) return { value: value[field as 'major'] }
  }
  throw new Refusal(`function of .${name} has no such field in ${kindOf(value)}`)
}

/** How a template writes what an expression came to; nothing at all is empty, where Go writes `<no value>`. */
export const writeValue = (value: Value): string => (value === null ? '' : textOf(value))
