import { describe, expect, it } from 'vitest'
import type { Variable } from '../../../../src/definition/definition.ts'
import { parseVariables } from '../../../../src/definition/rules/variables.ts'
import { cpuNow } from '../../../support/cpu-time.ts'
import { dropdown, profileOf } from '../../../support/definitions.ts'

const problemsOf = (...variables: readonly Partial<Variable>[]) =>
  parseVariables([
    profileOf(
      [],
      variables.map((variable) => ({ name: 'v', ...variable })),
    ),
  ]).problems.map(({ code, place }) => `${code} ${place.replace('profiles/u1/profile.json#spec.', '')}`)

describe('a declaration', () => {
  it.each<[string, Partial<Variable>[], string[]]>([
    ['is valid has no problem', [{ name: 'a.b-c_d', format: 'IPv4', defaultValue: '1.2.3.4' }], []],
    ['is hidden and optional has no problem', [{ hidden: true }], []],
    ['has an unknown format', [{ format: 'int' }], ['VariableFormatUnknown variables[0]']],
    ['has an unknown input', [{ inputType: 'list' as 'text' }], ['VariableInputTypeUnknown variables[0]']],
    ['has no name', [{ name: '' }], ['VariableNameInvalid variables[0]']],
    ['has a name with a space', [{ name: 'a b' }], ['VariableNameInvalid variables[0]']],
    ['has a name with a brace', [{ name: 'a}' }], ['VariableNameInvalid variables[0]']],
    ['is declared twice', [{}, { name: 'w' }, {}], ['VariableTwice variables[2]']],
    ['has a pattern that RE2 refuses', [{ regex: 'a(?!b)' }], ['VariablePatternInvalid variables[0]']],
    ['has a pattern with a back reference', [{ regex: '(a)\\1' }], ['VariablePatternInvalid variables[0]']],
    ['has a pattern that is not closed', [{ regex: '(a' }], ['VariablePatternInvalid variables[0]']],
    ['has a long pattern', [{ regex: 'a'.repeat(1_025) }], ['VariablePatternInvalid variables[0]']],
    [
      'has a pattern that repeats too much',
      [{ regex: 'x{1000}'.repeat(140) }],
      ['VariablePatternInvalid variables[0]'],
    ],
    ['is immutable without default', [{ immutable: true }], ['VariableDefaultMissing variables[0]']],
    [
      'is hidden and required without default',
      [{ hidden: true, required: true }],
      ['VariableDefaultMissing variables[0]'],
    ],
    [
      'has a default of another format',
      [{ format: 'number', defaultValue: 'x' }],
      ['VariableDefaultInvalid variables[0]'],
    ],
    [
      'has a default its regex refuses',
      [{ regex: '^a', defaultValue: 'x' }],
      ['VariableDefaultInvalid variables[0]'],
    ],
    ['is a dropdown without options', [{ inputType: 'dropdown' }], ['VariableOptionsInvalid variables[0]']],
    ['has an option twice', [dropdown('a', 'a')], ['VariableOptionsInvalid variables[0]']],
    ['has an option without value', [dropdown('a', '')], ['VariableOptionsInvalid variables[0]']],
    [
      'has an option of another format',
      [{ ...dropdown('1', 'a'), format: 'number' }],
      ['VariableDefaultInvalid variables[0]'],
    ],
    [
      'has a default that is not an option',
      [{ ...dropdown('a'), defaultValue: 'b' }],
      ['VariableDefaultInvalid variables[0]'],
    ],
    [
      'has two defaults',
      [
        {
          inputType: 'dropdown',
          options: [{ value: 'a', default: true }, { value: 'b' }],
          defaultValue: 'b',
        },
      ],
      ['VariableOptionsInvalid variables[0]'],
    ],
    [
      'has a default that an export masked',
      [{ isSensitive: true, defaultValue: '********', regex: '^[a-z]+$' }],
      ['VariableDefaultMasked variables[0]'],
    ],
    ['is not sensitive may have a default of stars', [{ defaultValue: '***' }], []],
    [
      'has a masked default and needs one',
      [{ isSensitive: true, defaultValue: '***', immutable: true }],
      ['VariableDefaultMasked variables[0]', 'VariableDefaultMissing variables[0]'],
    ],
    [
      'has masked options',
      [{ ...dropdown('******', '******', 'abcd'), isSensitive: true, regex: '^[a-z]+$' }],
      ['VariableDefaultMasked variables[0]', 'VariableDefaultMasked variables[0]'],
    ],
    [
      'has options but is not a dropdown',
      [{ options: [{ value: 'a' }] }],
      ['VariableOptionsUnused variables[0]'],
    ],
    [
      'has several problems, all reported',
      [{ format: 'x', regex: '(', immutable: true }],
      [
        'VariablePatternInvalid variables[0]',
        'VariableFormatUnknown variables[0]',
        'VariableDefaultMissing variables[0]',
      ],
    ],
  ])('a variable that %s', (_name, variables, problems) => {
    expect(problemsOf(...variables)).toEqual(problems)
  })

  it('a problem of a variable says why RE2 refuses its pattern, or which format was meant', () => {
    const { problems } = parseVariables([profileOf([], [{ name: 'v', regex: 'a(?!b)', format: 'ipv4cdir' }])])
    expect(problems.map(({ message }) => message)).toEqual([
      'variable v has a regex that is refused by RE2: invalid or unsupported Perl syntax: `(?!`',
      'variable v has an unknown format ipv4cdir; did you mean ipv4cidr?',
    ])
  })

  it('patterns that are slow to compile cannot block a host', () => {
    const variables = Array.from({ length: 1_000 }, (_, index) => ({
      name: `v${index}`,
      regex: `(?i)${'\\pL'.repeat(300)}${index}`,
    }))
    const begin = cpuNow()
    const { problems } = parseVariables([profileOf([], variables)])
    expect(cpuNow() - begin).toBeLessThan(15_000)
    expect(problems.length).toBeGreaterThan(900)
  })
})
