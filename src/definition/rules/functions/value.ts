import type { Version } from './version.ts'

/** A value of a template: a bigint is an integer of Go, whose 64 bits do not fit into a number; a number is Go's float64. */
export type Value =
  string | bigint | number | boolean | null | Version | readonly Value[] | ReadonlyMap<string, Value>

/** Why a function gives no value, as the end of a sentence that begins with its name. */
export class Refusal extends Error {}

// Characters that a function may return. A certificate in base64 has a few KiB.
const resultLimit = 65_536

/** Refuses a result that is longer than any definition needs, before it is built. @throws Refusal */
export function holdToLimit(length: number): void {
  if (length > resultLimit) throw new Refusal(`would return more than ${resultLimit} characters`)
}

export const isList = (value: Value): value is readonly Value[] => Array.isArray(value)
export const isDict = (value: Value): value is ReadonlyMap<string, Value> => value instanceof Map
const isVersion = (value: Value): value is Version =>
  typeof value === 'object' && value !== null && 'major' in value

/** Whether Go's templates treat a value as empty: nil, zero, false, or without content. */
export function isEmpty(value: Value): boolean {
  if (isList(value)) return value.length === 0
  if (isDict(value)) return value.size === 0
  return value === null || value === '' || value === false || value === 0 || value === 0n
}

/** Text of a value in a template: Go's `%v`. */
export function textOf(value: Value): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return floatText(value)
  if (value === null) return '<nil>'
  if (isList(value)) return `[${value.map(textOf).join(' ')}]`
  if (isDict(value)) {
    const pairs = [...value].sort(([one], [other]) => (one < other ? -1 : 1))
    return `map[${pairs.map(([key, each]) => `${key}:${textOf(each)}`).join(' ')}]`
  }
  return isVersion(value) ? value.text : value.toString()
}

/** Go's `%v` of a float: as short as possible; below 1e-4 and from 1e6 on with an exponent of at least two digits. */
function floatText(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value < 0 ? '-Inf' : '+Inf'
  if (Object.is(value, -0)) return '-0'
  const [digits = '', exponent = '0'] = value.toExponential().split('e')
  const power = Number(exponent)
  if (power >= -4 && power < 6) return value.toString()
  return `${digits}e${power < 0 ? '-' : '+'}${Math.abs(power).toString().padStart(2, '0')}`
}

/** The kind of a value, for messages. */
export function kindOf(value: Value): string {
  if (value === null) return 'nothing'
  if (isList(value)) return 'a list'
  if (isDict(value)) return 'a map'
  if (isVersion(value)) return 'a version'
  if (typeof value === 'string') return 'text'
  return typeof value === 'boolean' ? 'a boolean' : typeof value === 'bigint' ? 'an integer' : 'a number'
}

/** A reference of a macro: `.spectro.<kind>.<name>`. */
export interface Reference {
  readonly kind: 'var' | 'system' | 'pack' | 'macro'
  /** The text after the kind: `NAME`, `cluster.name`, `pack.path.to.value`. */
  readonly name: string
}

export type Expression =
  | { readonly kind: 'literal'; readonly value: Value }
  | { readonly kind: 'reference'; readonly reference: Reference }
  | { readonly kind: 'call'; readonly name: string; readonly values: readonly Expression[] }
  | { readonly kind: 'field'; readonly of: Expression; readonly name: string }

interface Kinds {
  readonly text: string
  readonly integer: bigint
  readonly number: number
  readonly boolean: boolean
  readonly list: readonly Value[]
  readonly any: Value
}
type Kind = keyof Kinds
type ArgumentsOf<T extends readonly Kind[]> = { [K in keyof T]: Kinds[T[K]] }

/** A function of templates. */
export interface TemplateFunction {
  /** The smallest and the largest number of arguments. */
  readonly least: number
  readonly most: number
  /** @throws Refusal */
  readonly call: (values: readonly Value[]) => Value
}

/** A function with arguments of these kinds. Other kinds are refused, as by Go's templates. */
export function define<const T extends readonly Kind[]>(
  takes: T,
  run: (...values: ArgumentsOf<T>) => Value,
): TemplateFunction {
  const call = (values: readonly Value[]): Value => {
    values.forEach((value, index) => checkKind(value, takes[index] ?? 'any'))
    return run(...(values as unknown as ArgumentsOf<T>))
  }
  return { least: takes.length, most: takes.length, call }
}

/** A function with any number of arguments, at least `least`. */
export const defineMany = (least: number, run: (values: readonly Value[]) => Value): TemplateFunction => ({
  least,
  most: Infinity,
  call: run,
})

const names: Record<Kind, string> = {
  text: 'text',
  integer: 'an integer',
  number: 'a number',
  boolean: 'a boolean',
  list: 'a list',
  any: 'a value',
}

function checkKind(value: Value, kind: Kind): void {
  const isRight =
    kind === 'any' ||
    (kind === 'text' && typeof value === 'string') ||
    (kind === 'integer' && typeof value === 'bigint') ||
    (kind === 'number' && (typeof value === 'number' || typeof value === 'bigint')) ||
    (kind === 'boolean' && typeof value === 'boolean') ||
    (kind === 'list' && isList(value) && !isDict(value))
  if (!isRight) throw new Refusal(`takes ${names[kind]}, not ${kindOf(value)}`)
}
