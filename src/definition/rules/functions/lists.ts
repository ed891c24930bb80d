import { define, defineMany, type TemplateFunction } from './define.ts'
import { textsOf } from './text.ts'
import { holdToLimit, isDict, isEmpty, isList, kindOf, Refusal, type Value } from './value.ts'

const nothing: Value = null

function split(separator: string, text: string): string[] {
  return separator === '' ? Array.from(text) : text.split(separator)
}

/** At most `count` parts; the last one contains the rest. */
function splitCount(separator: string, count: bigint, text: string): string[] {
  if (count === 0n) return []
  const parts = split(separator, text)
  if (count < 0n || parts.length <= count) return parts
  const kept = Number(count) - 1
  return [...parts.slice(0, kept), parts.slice(kept).join(separator)]
}

const numbered = (parts: readonly string[]) => new Map(parts.map((part, index) => [`_${index}`, part]))

const byCode = (one: string, other: string) => {
  const [ours, theirs] = [Buffer.from(one), Buffer.from(other)]
  return Buffer.compare(ours, theirs)
}

function lengthOf(value: Value): bigint {
  if (typeof value === 'string') return BigInt(Buffer.byteLength(value))
  if (isList(value)) return BigInt(value.length)
  if (isDict(value)) return BigInt(value.size)
  throw new Refusal(`takes text, a list or a map, not ${kindOf(value)}`)
}

function at(value: Value, index: Value | undefined): Value {
  if (isList(value) && typeof index === 'bigint') {
    const found = index < 0n ? undefined : value[Number(index)]
    if (found === undefined) throw new Refusal(`has the index ${index} for a list of ${value.length} values`)
    return found
  }
  if (isDict(value) && typeof index === 'string') return value.get(index) ?? ''
  throw new Refusal(`takes a list and integers, not ${kindOf(value)}`)
}

const uniq = (list: readonly Value[]) => [...new Set(list)]

export const listFunctions: Readonly<Record<string, TemplateFunction>> = {
  list: defineMany(0, (values) => values),
  tuple: defineMany(0, (values) => values),
  splitList: define(['text', 'text'], split),
  split: define(['text', 'text'], (separator, text) => numbered(split(separator, text))),
  splitn: define(['text', 'integer', 'text'], (separator, count, text) =>
    numbered(splitCount(separator, count, text)),
  ),
  toStrings: define(['any'], textsOf),
  join: define(['text', 'any'], (separator, value) => {
    const texts = textsOf(value)
    holdToLimit(texts.reduce((sum, { length }) => sum + length + separator.length, 0))
    return texts.join(separator)
  }),
  sortAlpha: define(['any'], (value) => textsOf(value).sort(byCode)),
  first: define(['list'], (list) => list[0] ?? nothing),
  last: define(['list'], (list) => list.at(-1) ?? nothing),
  rest: define(['list'], (list) => list.slice(1)),
  initial: define(['list'], (list) => list.slice(0, -1)),
  reverse: define(['list'], (list) => list.toReversed()),
  uniq: define(['list'], uniq),
  compact: define(['list'], (list) => list.filter((value) => !isEmpty(value))),
  has: define(['any', 'any'], (needle, list) => isList(list) && list.includes(needle)),
  len: define(['any'], lengthOf),
  index: defineMany(1, ([value = nothing, ...indices]) => indices.reduce(at, value)),
}
