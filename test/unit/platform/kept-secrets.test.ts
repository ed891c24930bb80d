import { describe, expect, it } from 'vitest'
import { masked } from '../../../src/base/mask.ts'
import { variableDetails } from '../../../src/definition/slots/details.ts'
import { restoreSecrets } from '../../../src/platform/profiles/kept-secrets.ts'
import type { Variable } from '../../../src/platform/profiles/schemas.ts'
import { refusalOf } from '../../support/refusal-of.ts'

type Option = NonNullable<Variable['options']>[number]

const dropdown = (options: readonly Option[]): Variable => ({
  ...{ name: 'KEY', isSensitive: true },
  options: [...options],
})

function change(stored: readonly Option[], edit: (shown: Option[]) => Option[]) {
  const before = dropdown(stored)
  const shown = variableDetails(before)
  const given = dropdown(edit([...(shown.options ?? [])]))
  return restoreSecrets([given], { stored: [before], shown: [shown] })[0]?.options
}

const [red, green, blue] = ['red', 'green', 'blue'].map((label) => ({
  value: `secret of ${label}`,
  label,
})) as [Option, Option, Option]

describe('the masked options of a sensitive variable', () => {
  it.each<[string, (shown: Option[]) => Option[], Option[]]>([
    ['stay', (shown) => shown, [red, green, blue]],
    ['are reversed', (shown) => shown.reverse(), [blue, green, red]],
    ['are fewer', (shown) => shown.slice(1), [green, blue]],
    [
      'are more',
      (shown) => [{ value: 'new', label: 'new' }, ...shown],
      [{ value: 'new', label: 'new' }, red, green, blue],
    ],
  ])('keep their values with their labels where they %s', (_, edit, expected) => {
    expect(change([red, green, blue], edit)).toEqual(expected)
  })

  it('of which one has the preselection keep their values where another one gets it', () => {
    const edit = ([first, second]: Option[]) => [
      { ...first!, default: false },
      { ...second!, default: true },
    ]
    expect(change([{ ...red, default: true }, green], edit)).toEqual(edit([red, green]))
  })

  it.each<[string, Option[], (shown: Option[]) => Option[]]>([
    ['with a new label', [red, green], ([first, ...rest]) => [{ ...first!, label: 'other' }, ...rest]],
    ['with the label of two', [red, { ...green, label: 'red' }], (shown) => shown.slice(0, 1)],
    ['with a label that is given twice', [red, green], ([first]) => [first!, first!]],
    ['without a label, of which one is gone', [{ value: 'a1' }, { value: 'b1' }], (shown) => shown.slice(1)],
    [
      'without a label, of which one is new',
      [{ value: 'a1' }, { value: 'b1' }],
      ([, second]) => [second!, { value: 'c1' }],
    ],
  ])('%s are refused', (_, stored, edit) => {
    expect(refusalOf(() => change(stored, edit))).toMatchObject({
      code: 'BadRequest',
      details: { field: 'variables[0].options[0]' },
    })
  })

  it('without labels keep their values where all are sent back', () => {
    const stored = [{ value: 'a1' }, { value: 'b1', description: 'for b1' }]
    expect(change(stored, (shown) => shown)).toEqual(stored)
    expect(JSON.stringify(variableDetails(dropdown(stored) as never))).toContain(`"description":"${masked}"`)
  })
})
