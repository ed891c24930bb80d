import { describe, expect, it } from 'vitest'
import { AppError } from '../../../src/errors/app-error.ts'
import { parseFilter, parseOrder } from '../../../src/lists/filter.ts'
import { cpuNow } from '../../support/cpu-time.ts'
import { memoryThings } from '../../support/list-data.ts'

/** `[[['spec.kind', 'a']]]`: alternatives of conditions. */
const read = (text: string) =>
  parseFilter(text, memoryThings).map((all) => all.map(({ path, value }) => [path, value]))

const refusal = (text: string): AppError => {
  try {
    parseFilter(text, memoryThings)
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
  throw new Error(`${text} was taken`)
}

const kind = (value: string) => ['spec.kind', value]
const name = (value: string) => ['metadata.name', value]

describe('a filter', () => {
  it.each([
    ['one condition', 'spec.kind=a', [[kind('a')]]],
    ['no value', 'spec.kind=', [[kind('')]]],
    ['two by AND', 'spec.kind=aANDmetadata.name=b', [[kind('a'), name('b')]]],
    ['two by OR', 'spec.kind=aORspec.kind=b', [[kind('a')], [kind('b')]]],
    [
      'AND before OR',
      'spec.kind=aORspec.kind=bANDmetadata.name=cORmetadata.name=d',
      [[kind('a')], [kind('b'), name('c')], [name('d')]],
    ],
    ['blanks around OR', 'spec.kind=a OR  spec.kind=b', [[kind('a')], [kind('b')]]],
    ['blanks around AND', 'spec.kind="a " AND metadata.name=b c ', [[kind('a '), name('b c ')]]],
    ['an empty value before AND', 'spec.kind=ANDmetadata.name=b', [[kind(''), name('b')]]],
    ['= in a value', 'spec.kind=a=b==', [[kind('a=b==')]]],
    ['AND and OR in a value', 'spec.kind=SANDORANDOR', [[kind('SANDORANDOR')]]],
    ['AND before what is no field', 'spec.kind=xANDfoo=y', [[kind('xANDfoo=y')]]],
    ['AND before a field without =', 'spec.kind=xANDmetadata.name', [[kind('xANDmetadata.name')]]],
    ['AND before a longer name', 'spec.kind=xANDmetadata.names=y', [[kind('xANDmetadata.names=y')]]],
    [
      'AND before a field whose dot is another letter',
      'spec.kind=xANDmetadata_name=y',
      [[kind('xANDmetadata_name=y')]],
    ],
    ['words in lower case', 'spec.kind=xandmetadata.name=y', [[kind('xandmetadata.name=y')]]],
    ['a value in quotes', 'spec.kind="a b"', [[kind('a b')]]],
    ['an empty value in quotes', 'spec.kind=""', [[kind('')]]],
    ['a separator in quotes', 'spec.kind="xANDmetadata.name=y"', [[kind('xANDmetadata.name=y')]]],
    ['quotes, then AND', 'spec.kind="a"ANDmetadata.name="b"', [[kind('a'), name('b')]]],
    ['a quote in quotes', String.raw`spec.kind="a\"b"`, [[kind('a"b')]]],
    ['a backslash at the end of quotes', String.raw`spec.kind="a\\"`, [[kind('a\\')]]],
    ['another backslash in quotes', String.raw`spec.kind="C:\x"`, [[kind(String.raw`C:\x`)]]],
    ['a quote inside a bare value', 'spec.kind=a"b"', [[kind('a"b"')]]],
    ['a line break in quotes', 'spec.kind="a\nb"', [[kind('a\nb')]]],
    ['an integer', 'spec.size=-12', [[['spec.size', -12]]]],
    ['booleans', 'spec.isOn=trueORspec.isOn=false', [[['spec.isOn', 1]], [['spec.isOn', 0]]]],
    [
      'a time',
      'metadata.at=2026-11-21T08:00:00.5Z',
      [[['metadata.at', Date.UTC(2026, 10, 21, 8, 0, 0, 500)]]],
    ],
    [
      'a time with an offset',
      'metadata.at=2026-11-21T09:00:00+01:00',
      [[['metadata.at', Date.UTC(2026, 10, 21, 8)]]],
    ],
  ])('the filter %s is parsed', (_what, text, expected) => {
    expect(read(text)).toEqual(expected)
  })

  it.each([
    ['a path that is not indexed', 'spec.colour=red'],
    ['a path of every object', '__proto__=x'],
    ['another path of every object', 'constructor=x'],
    ['SQL for a path', 'seq=1) OR (1=1'],
    ['no condition at all', 'hello'],
    ['a separator at the beginning', 'ANDspec.kind=a'],
    ['a space before a path', ' spec.kind=a'],
    ['a quote that is not closed', 'spec.kind="a'],
    ['a quote that only an escape closes', String.raw`spec.kind="a\"`],
    ['something behind quotes', 'spec.kind="a"b'],
    ['AND without a path behind quotes', 'spec.kind="a"AND'],
    ['AND and no field behind quotes', 'spec.kind="a"ANDfoo=1'],
    ['text for an integer', 'spec.size=ten'],
    ['a fraction for an integer', 'spec.size=1.5'],
    ['too large an integer', 'spec.size=99999999999999999999'],
    ['a number for a boolean', 'spec.isOn=1'],
    ['a method for a boolean', 'spec.isOn=toString'],
    ['a date without a time', 'metadata.at=2026-11-21'],
    ['a month that does not exist', 'metadata.at=2026-13-21T08:00:00Z'],
    ['21 conditions', Array.from({ length: 21 }, () => 'spec.size=1').join('OR')],
  ])('a filter with %s is refused, naming filters', (_what, text) => {
    expect(refusal(text)).toMatchObject({ code: 'BadRequest', details: { field: 'filters' } })
  })

  it('the refusal of an unknown path names the indexed paths', () => {
    const { message, details } = refusal('spec.colour=red')
    const paths = Object.keys(memoryThings.fields)
    for (const path of paths) expect(message).toContain(path)
    expect(details).toEqual({ field: 'filters', allowed: paths })
  })

  it('a filter of 2,000 near-separators is parsed in no time', () => {
    const text = `spec.kind=${'ANDspec.size'.repeat(165)}`
    const begin = cpuNow()
    expect(read(text)).toEqual([[kind('ANDspec.size'.repeat(165))]])
    expect(cpuNow() - begin).toBeLessThan(500)
  })
})

describe('a filter by a family of fields', () => {
  const labelled = {
    ...memoryThings,
    families: [
      {
        prefix: 'metadata.labels.',
        placeholder: 'KEY',
        field: () => ({ type: 'text' as const, isOrdered: false, read: () => '' }),
      },
    ],
  }
  const parsed = (text: string) =>
    parseFilter(text, labelled).map((all) => all.map(({ path, value }) => [path, value]))

  it.each([
    ['metadata.labels.hall=3', [[['metadata.labels.hall', '3']]]],
    ['metadata.labels.plant.example/hall=', [[['metadata.labels.plant.example/hall', '']]]],
    [
      'metadata.labels.a=1ANDmetadata.labels.b=2ORspec.kind=c',
      [
        [
          ['metadata.labels.a', '1'],
          ['metadata.labels.b', '2'],
        ],
        [kind('c')],
      ],
    ],
    [
      'metadata.labels.AND=xORmetadata.labels.OR=y',
      [[['metadata.labels.AND', 'x']], [['metadata.labels.OR', 'y']]],
    ],
    ['spec.kind=xANDmetadata.labels.=y', [[kind('xANDmetadata.labels.=y')]]],
  ])('%s is read', (text, filter) => {
    expect(parsed(text)).toEqual(filter)
  })

  it.each([
    'metadata.labels.=x',
    'metadata.labels=x',
    'metadata.labels.a b=x',
    'metadata.labels."=x',
    "metadata.labels.a'=x",
  ])('%s is refused', (text) => {
    expect(() => parsed(text)).toThrow('metadata.labels.KEY')
  })

  it('is no order', () => {
    expect(() => parseOrder('metadata.labels.hall=1', labelled)).toThrow('orderBy may only name')
  })
})
