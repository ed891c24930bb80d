import { describe, expect, it } from 'vitest'
import { describeForm } from '../../../src/api/json-form.ts'

const nested = (levels: number, open = '[', close = ']') => open.repeat(levels) + close.repeat(levels)

describe('the form of a body', () => {
  it('is at most 128 levels deep', () => {
    expect(describeForm(nested(128))).toBeUndefined()
    expect(describeForm(nested(129))).toContain('128 levels')
    expect(describeForm(`${'{"a":'.repeat(129)}1${'}'.repeat(129)}`)).toContain('128 levels')
    expect(describeForm(`[${Array(500).fill('[{}]').join()}]`)).toBeUndefined()
  })

  it('has levels outside of texts only', () => {
    expect(describeForm(JSON.stringify({ text: `"\\${nested(1_000)}\\"${nested(1_000)}` }))).toBeUndefined()
    expect(describeForm(`["\\\\",${nested(128)}]`)).toContain('128 levels')
    expect(describeForm('"without an end')).toBeUndefined()
    expect(describeForm('"without an end\\')).toBeUndefined()
  })

  it('has at most 50,000 values', () => {
    expect(describeForm(`[${'0,'.repeat(49_997)}0]`)).toBeUndefined()
    expect(describeForm(`[${'0,'.repeat(50_000)}0]`)).toContain('50000 values')
    expect(describeForm(`[${'{"30":0},'.repeat(25_000)}0]`)).toContain('50000 values')
    expect(describeForm(JSON.stringify(','.repeat(60_000)))).toBeUndefined()
  })

  it.each([
    '"\\ud800"',
    '"\\uDFFF"',
    '"\\ud83dx\\ude00"',
    '"\\ude00\\ud83d"',
    '"\\\\\\ud83d"',
    '{"\\udbff\\n":1}',
  ])('has no half of a surrogate pair: %s', (text) => {
    expect(describeForm(text)).toContain('surrogate')
  })

  it.each(['"\\ud83d\\uDE00"', '"😀"', '"\\\\ud800"', '"\\u0000\\ue000"', '"\\\\\\\\ud800"', ''])(
    'may have whole characters and what only looks like a half: %s',
    (text) => {
      expect(describeForm(text)).toBeUndefined()
    },
  )
})
