import { define, defineMany, type TemplateFunction } from './define.ts'
import { Refusal, type Value } from './value.ts'

const least = -(1n << 63n)
const most = (1n << 63n) - 1n

/** Overflow as in Go's int64: the value wraps around. */
const wrap = (value: bigint) => BigInt.asIntN(64, value)

/** The function `int`: a value that is not a number becomes 0. */
export function toInteger(value: Value): bigint {
  if (typeof value === 'bigint') return value
  if (typeof value === 'number') return Math.abs(value) < 2 ** 63 ? BigInt(Math.trunc(value)) : least
  if (typeof value === 'boolean') return value ? 1n : 0n
  return typeof value === 'string' ? parseInteger(value) : 0n
}

/** Parses text like Go: an integer of any base, also `1.0`. */
function parseInteger(text: string): bigint {
  const [, sign = '', digits = ''] = /^([-+]?)([0-9a-zA-Z_]+)(?:\.0*)?$/.exec(text) ?? []
  const number = digitsOf(digits)
  if (number === undefined) return 0n
  const value = sign === '-' ? -number : number
  return value < least || value > most ? 0n : value
}

function digitsOf(digits: string): bigint | undefined {
  if (digits === '' || digits.length > 80) return undefined
  const isBased = /^0[xX][0-9a-fA-F]+$|^0[oO][0-7]+$|^0[bB][01]+$/.test(digits)
  if (isBased) return BigInt(digits.toLowerCase())
  if (/^0[0-7]+$/.test(digits)) return BigInt(`0o${digits}`)
  return /^(?:0|[1-9][0-9]*)$/.test(digits) ? BigInt(digits) : undefined
}

function toFloat(value: Value): number {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  if (typeof value === 'boolean') return value ? 1 : 0
  if (typeof value !== 'string') return 0
  return /^[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$/.test(value) &&
    Number.isFinite(Number(value))
    ? Number(value)
    : 0
}

function divide(by: (one: bigint, other: bigint) => bigint): TemplateFunction {
  return define(['any', 'any'], (one, other) => {
    const divisor = toInteger(other)
    if (divisor === 0n) throw new Refusal('cannot divide by 0')
    return wrap(by(toInteger(one), divisor))
  })
}

const extreme = (isBetter: (one: bigint, other: bigint) => boolean) =>
  defineMany(1, (values) =>
    values.map(toInteger).reduce((best, each) => (isBetter(each, best) ? each : best)),
  )
const largest = extreme((one, other) => one > other)

/** Rounds to decimal places as sprig does: positive values half up, negative values always down (-2.3 becomes -3). */
function round(value: number, places: number): number {
  const factor = 10 ** places
  const scaled = value * factor
  const rest = scaled - Math.trunc(scaled)
  return (rest >= 0.5 ? Math.ceil(scaled) : Math.floor(scaled)) / factor
}

export const numberFunctions: Readonly<Record<string, TemplateFunction>> = {
  int: define(['any'], toInteger),
  int64: define(['any'], toInteger),
  float64: define(['any'], toFloat),
  atoi: define(['text'], (text) => (/^[-+]?[0-9]+$/.test(text) ? atoi(text) : 0n)),
  add: defineMany(0, (values) => values.map(toInteger).reduce((sum, each) => wrap(sum + each), 0n)),
  add1: define(['any'], (value) => wrap(toInteger(value) + 1n)),
  sub: define(['any', 'any'], (one, other) => wrap(toInteger(one) - toInteger(other))),
  mul: defineMany(1, (values) => values.map(toInteger).reduce((product, each) => wrap(product * each), 1n)),
  div: divide((one, other) => one / other),
  mod: divide((one, other) => one % other),
  max: largest,
  biggest: largest,
  min: extreme((one, other) => one < other),
  floor: define(['any'], (value) => Math.floor(toFloat(value))),
  ceil: define(['any'], (value) => Math.ceil(toFloat(value))),
  round: define(['any', 'integer'], (value, places) => {
    if (places < 0n || places > 15n) throw new Refusal('takes 0 to 15 places')
    return round(toFloat(value), Number(places))
  }),
}

function atoi(text: string): bigint {
  if (text.length > 80) return text.startsWith('-') ? least : most
  const value = BigInt(text.replace(/^\+/, ''))
  return value < least ? least : value > most ? most : value
}
