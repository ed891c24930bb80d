import { define, defineMany, type TemplateFunction } from './define.ts'
import { isEmpty, kindOf, Refusal, type Value } from './value.ts'
import { parseVersion, satisfies } from './version.ts'

/** Go compares only values of the same kind. */
function checkSameKind(one: Value, other: Value): void {
  if (typeof one !== typeof other || typeof one === 'object')
    throw new Refusal(`cannot compare ${kindOf(one)} with ${kindOf(other)}`)
}

function isSame(one: Value, other: Value): boolean {
  if (one === null || other === null) return one === other
  checkSameKind(one, other)
  return one === other
}

function order(one: Value, other: Value): number {
  checkSameKind(one, other)
  if (typeof one === 'boolean') throw new Refusal('cannot order booleans')
  if (typeof one === 'string') return Buffer.compare(Buffer.from(one), Buffer.from(other as string))
  return one === other ? 0 : (one as bigint) < (other as bigint) ? -1 : 1
}

const requireVersion = (text: string) => {
  const version = parseVersion(text)
  if (version === undefined) throw new Refusal('takes a version such as 1.28.3')
  return version
}

export const logicFunctions: Readonly<Record<string, TemplateFunction>> = {
  empty: define(['any'], isEmpty),
  not: define(['any'], isEmpty),
  all: defineMany(0, (values) => !values.some(isEmpty)),
  any: defineMany(0, (values) => values.some((value) => !isEmpty(value))),
  eq: defineMany(2, ([one = null, ...others]) => others.some((other) => isSame(one, other))),
  ne: define(['any', 'any'], (one, other) => !isSame(one, other)),
  lt: define(['any', 'any'], (one, other) => order(one, other) < 0),
  le: define(['any', 'any'], (one, other) => order(one, other) <= 0),
  gt: define(['any', 'any'], (one, other) => order(one, other) > 0),
  ge: define(['any', 'any'], (one, other) => order(one, other) >= 0),
  semver: define(['text'], requireVersion),
  semverCompare: define(['text', 'text'], (constraint, text) => {
    const isSatisfied = satisfies(requireVersion(text), constraint)
    if (isSatisfied === undefined) throw new Refusal('takes a constraint such as >=1.28.0')
    return isSatisfied
  }),
}
