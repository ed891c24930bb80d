import { describe, expect, it } from 'vitest'
import { allOf, labelsOf } from '../../../src/console/platform/filter.ts'
import { parseFilter } from '../../../src/lists/filter.ts'
import { hostList } from '../../../src/platform/hosts/store.ts'

/** The conditions that the platform reads in a filter of the pages. */
const readBack = (conditions: Parameters<typeof allOf>[0]) =>
  parseFilter(allOf(conditions), hostList).map((all) => all.map(({ path, value }) => [path, value]))

describe('a filter of the pages', () => {
  it.each([
    'press-4',
    'a "quoted" one',
    String.raw`a back\slash\\`,
    'x AND metadata.uid=y',
    'x" OR metadata.name="y',
    '',
  ])('the platform reads the name %j as it is', (name) => {
    expect(readBack([['metadata.name', name]])).toEqual([[['metadata.name', name]]])
  })

  it('all conditions have to hold', () => {
    const conditions = [
      ['metadata.labels.hall', '3'],
      ['status.health.state', ''],
    ] as const
    expect(readBack(conditions)).toEqual([conditions])
  })

  it('without a condition there is no filter', () => {
    expect(allOf([])).toBe('')
  })
})

describe('labels that are typed', () => {
  it.each([
    ['', []],
    ['  ', []],
    ['hall=3', [['metadata.labels.hall', '3']]],
    [
      ' hall=3, line=2 ',
      [
        ['metadata.labels.hall', '3'],
        ['metadata.labels.line', '2'],
      ],
    ],
    ['empty=', [['metadata.labels.empty', '']]],
    ['hall', undefined],
    ['=3', undefined],
    ['hall=3 line', undefined],
  ])('%j', (text, conditions) => {
    expect(labelsOf(text)).toEqual(conditions)
  })
})
