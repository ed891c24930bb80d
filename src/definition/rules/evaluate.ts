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

/** A value, or the reason why there is none: it is not known yet (`later`), or this host never knows it (`never`). */
export type Known = { readonly value: Value } | { readonly missing: 'later' | 'never' }

/** The value of an expression, or the refusal of a function, as the end of a sentence. */
export type Evaluated = Known | { readonly refusal: string }

type Choose = (values: readonly Known[]) => Known

const nothing: Known = { value: null }
/** A value that is never known counts as empty for functions that test for emptiness. */
const asEmpty = (known: Known): Known => ('missing' in known && known.missing === 'never' ? nothing : known)
const isChosen = (known: Known) => 'missing' in known || !isEmpty(known.value)

/** The first value that is not empty. */
const firstPresent: Choose = (values) => values.map(asEmpty).find(isChosen) ?? nothing

function takeFirst(isTaken: (known: Known) => boolean): Choose {
  return (values) => values.find((known) => 'missing' in known || isTaken(known)) ?? values.at(-1) ?? nothing
}

// Functions that choose between their arguments, so that not every argument has to be known.
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
  if (typeof test.value !== 'boolean') throw new Refusal(`takes a boolean, not ${kindOf(test.value)}`)
  return test.value ? yes : no
}

/** How many arguments a function takes; undefined if no function has that name. */
export const countsOf = (name: string): Pick<TemplateFunction, 'least' | 'most'> | undefined =>
  choices.get(name) ?? templateFunctions.get(name)

export const functionNames: readonly string[] = [...choices.keys(), ...templateFunctions.keys()]

export interface EvaluationEdges {
  readonly valueOf: (reference: Reference) => Known
  /** Called with the number of characters that each function returns. @throws Refusal to end the evaluation */
  readonly spend: (length: number) => void
}

/** Evaluates an expression. A refusal is returned, not thrown. */
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
    if (value === undefined) throw new Refusal('is unknown')
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

/** `.Major` of a version, `._0` of the map that `split` returns. */
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

/** The text of a value in a template. nil becomes an empty text, for which Go writes `<no value>`. */
export const writeValue = (value: Value): string => (value === null ? '' : textOf(value))
