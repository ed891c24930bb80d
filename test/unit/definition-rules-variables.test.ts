import { describe, expect, it } from 'vitest'
import type { Variable } from '../../src/cluster/definition.ts'
import { readVariables, validateVariables } from '../../src/cluster/rules/variables.ts'
import { cpuNow } from '../support/cpu-time.ts'
import { profileOf } from '../support/definitions.ts'
import { createRandom } from '../support/random.ts'

const reasonOf = (variable: Partial<Variable>, value?: string) => {
  const profile = profileOf([], [{ name: 'v', ...variable }])
  const [result] = validateVariables(
    [profile],
    value === undefined ? [] : [{ name: 'v', profileUid: 'u1', value }],
  )
  expect(result?.isValid).toBe(result?.validationFailureReason === '')
  return result?.validationFailureReason
}

const problemsOf = (...variables: readonly Partial<Variable>[]) =>
  readVariables([
    profileOf(
      [],
      variables.map((variable) => ({ name: 'v', ...variable })),
    ),
  ]).problems.map(({ code, place }) => `${code} ${place.replace('profiles/u1/profile.json#spec.', '')}`)

const dropdown = (...values: readonly string[]): Partial<Variable> => ({
  inputType: 'dropdown',
  options: values.map((value) => ({ value })),
})

describe('the value of a variable', () => {
  it.each<[string, Partial<Variable>, string | undefined, string]>([
    ['is taken', { format: 'number' }, '12', ''],
    ['of another format is refused', { format: 'Number' }, 'abc', 'v must be a number such as 8080 or -0.5'],
    ['is taken as text where the format is unknown', { format: 'colour' }, 'red', ''],
    ['may be empty where it is not required', { format: 'number', regex: '^1$' }, '', ''],
    ['must not be empty where it is required', { required: true }, '', 'v is required'],
    ['must be given where it is required', { required: true }, undefined, 'v is required'],
    ['must not be emptied where it is required', { required: true, defaultValue: 'x' }, '', 'v is required'],
    ['is its default where it is not given', { required: true, defaultValue: 'x' }, undefined, ''],
    [
      'is judged where it is the default',
      { format: 'ipv4', defaultValue: 'x' },
      undefined,
      'v must be an IPv4 address such as 192.0.2.1',
    ],
    ['of one space is not empty', { required: true }, ' ', ''],
    [
      'is not required to be shown where it is hidden',
      { hidden: true, required: true, defaultValue: 'x' },
      undefined,
      '',
    ],
    ['that is immutable may be given as it is', { immutable: true, defaultValue: 'x' }, 'x', ''],
    ['that is immutable may be left', { immutable: true, required: true, defaultValue: 'x' }, '', ''],
    [
      'that is immutable cannot be changed',
      { immutable: true, defaultValue: 'x' },
      'y',
      'v is immutable: leave its default',
    ],
    [
      'that is immutable needs a default',
      { immutable: true },
      'y',
      'v is immutable and has no default: correct the definition',
    ],
    ['is one of the options', dropdown('a', 'b'), 'b', ''],
    ['is none of the options', dropdown('a', 'b'), 'B', 'v must be one of a, b'],
    [
      'is the option marked as default',
      { ...dropdown(), required: true, options: [{ value: 'a', default: true }] },
      undefined,
      '',
    ],
    ['is not held to options without a dropdown', { options: [{ value: 'a' }] }, 'b', ''],
    ['is one line', {}, 'a\nb', 'v must be a single line'],
    ['is one line in a dropdown', { inputType: 'text' }, 'a\rb', 'v must be a single line'],
    ['may be many lines where the input has them', { inputType: 'multiline' }, 'a\nb', ''],
    ['in base64 may be folded', { inputType: 'multiline', format: 'base64' }, 'QUJD\nQUJD', ''],
    ['is at most 65,536 characters long', {}, 'x'.repeat(65_537), 'v must be at most 65536 characters long'],
    ['of 65,536 characters is taken', {}, 'x'.repeat(65_536), ''],
    ['matches its regex anywhere', { regex: '[a-z]+' }, '1a2', ''],
    [
      'matches its regex as a whole where that is anchored',
      { regex: '^[a-z]+$' },
      '1a2',
      'v must match the regex ^[a-z]+$',
    ],
    [
      'with a line break at its end does not end before it',
      { regex: '^a$', inputType: 'multiline' },
      'a\n',
      'v must match the regex ^a$',
    ],
    ['is matched with classes and flags of RE2', { regex: '(?i)^[[:alpha:]]+\\pL$' }, 'ABc\u00e9', ''],
    ['is matched by ASCII digits alone', { regex: '^\\d$' }, '\u0663', 'v must match the regex ^\\d$'],
    ['is matched by code points', { regex: '^.$' }, '\u{1F600}', ''],
    ['is not matched where RE2 refuses the regex', { regex: '(?=a)' }, 'b', ''],
    [
      'is held to format and regex',
      { format: 'number', regex: '^[0-9]{4}$' },
      '80',
      'v must match the regex ^[0-9]{4}$',
    ],
  ])('%s', (_name, variable, value, reason) => {
    expect(reasonOf(variable, value)).toBe(reason)
  })

  it.each<[string, Partial<Variable>]>([
    ['format', { format: 'number' }],
    ['regex', { regex: '^x$' }],
    ['immutable', { immutable: true, defaultValue: 'topsecret-default' }],
    ['options', { ...dropdown('topsecret-default', 'b') }],
    ['lines', { regex: 'zzz', inputType: 'multiline' }],
    ['length', { regex: 'zzz' }],
  ])('never stands in a reason when it is sensitive (%s)', (_name, variable) => {
    for (const value of ['topsecret', `topsecret\n${'x'.repeat(70_000)}`]) {
      const profile = profileOf([], [{ name: 'v', isSensitive: true, ...variable }])
      const results = validateVariables(
        [profile],
        [
          { name: 'v', value },
          { name: 'v', value },
          { name: 'w', value },
        ],
      )
      expect(results.map(({ isValid }) => isValid)).toEqual([false, false, false])
      expect(JSON.stringify([results, readVariables([profile]).problems])).not.toContain('topsecret')
    }
  })

  it('is judged in linear time by a pattern that would hold up a backtracking engine', () => {
    const begin = cpuNow()
    expect(reasonOf({ regex: '^(a+)+$' }, `${'a'.repeat(65_000)}!`)).toMatch('must match')
    expect(reasonOf({ regex: '(x+x+)+y' }, 'x'.repeat(65_000))).toMatch('must match')
    expect(reasonOf({ regex: '^(([a-z])+.)+[A-Z]([a-z])+$' }, 'a'.repeat(65_000))).toMatch('must match')
    expect(cpuNow() - begin).toBeLessThan(2_000)
  })

  it('is refused where values and patterns together would take too long', () => {
    const regex = '(.*a){900}'
    const variables = Array.from({ length: 20 }, (_, index) => ({ name: `v${index}`, regex }))
    const given = variables.map(({ name }) => ({ name, value: `${'ab'.repeat(5_000)}!` }))
    const begin = cpuNow()
    const results = validateVariables([profileOf([], variables)], given)
    expect(cpuNow() - begin).toBeLessThan(4_000)
    expect(results.at(-1)?.validationFailureReason).toBe(
      'v19 is too long for its regex, together with all those before it',
    )
  })
})

describe('a validation', () => {
  const profiles = [
    profileOf([], [{ name: 'a.b', regex: '^x' }, { name: 'shared' }, { name: 'needed', required: true }]),
    profileOf([], [{ name: 'shared', format: 'number' }], { uid: 'u2', name: 'second' }),
  ]

  it('answers what was given first and then what was not, with the profile of each', () => {
    expect(
      validateVariables(profiles, [
        { name: 'shared', profileUid: 'u2', value: '1' },
        { name: 'a.b', value: 'y' },
      ]),
    ).toEqual([
      {
        name: 'shared',
        profileUid: 'u2',
        profileName: 'second',
        isValid: true,
        regex: '',
        validationFailureReason: '',
      },
      {
        name: 'a.b',
        profileUid: 'u1',
        profileName: 'first',
        isValid: false,
        regex: '^x',
        validationFailureReason: 'a.b must match the regex ^x',
      },
      {
        name: 'shared',
        profileUid: 'u1',
        profileName: 'first',
        isValid: true,
        regex: '',
        validationFailureReason: '',
      },
      {
        name: 'needed',
        profileUid: 'u1',
        profileName: 'first',
        isValid: false,
        regex: '',
        validationFailureReason: 'needed is required',
      },
    ])
  })

  it.each([
    ['an unknown name', { name: 'neded', value: '' }, 'neded is not declared; did you mean needed?'],
    ['a name of another profile', { name: 'needed', profileUid: 'u2', value: '' }, 'needed is not declared'],
    [
      'an unknown profile',
      { name: 'needed', profileUid: 'u3', value: '' },
      'needed profileUid names no profile of this definition',
    ],
    [
      'a name of two profiles',
      { name: 'shared', value: '' },
      'shared is declared by 2 profiles; give its profileUid',
    ],
    ['a name of objects', { name: '__proto__', value: '' }, '__proto__ is not declared'],
  ])('reports %s', (_name, given, reason) => {
    expect(validateVariables(profiles, [given])[0]).toMatchObject({
      isValid: false,
      validationFailureReason: reason,
    })
  })

  it('takes the first of two values and reports the second', () => {
    const given = ['x1', 'x2'].map((value) => ({ name: 'a.b', value }))
    expect(
      validateVariables(profiles, given)
        .slice(0, 2)
        .map((each) => each.validationFailureReason),
    ).toEqual(['', 'a.b is given twice'])
  })

  it('never throws and answers each given value, whatever is declared and given', () => {
    const random = createRandom(11)
    const pieces = [
      '',
      'a',
      '0',
      '-',
      '.',
      '\ud800',
      '\u{1F600}',
      '\n',
      '(',
      '[',
      '*',
      '{1000}',
      '\\',
      '\\p',
      '^',
      '$',
      '|',
      '?',
      '__proto__',
      '\0',
      '1.2.3.4',
      '/',
      ':',
      '=',
    ]
    const text = () => Array.from({ length: random.below(6) }, () => random.pick(pieces)).join('')
    const maybe = <T>(value: T) => (random.isChosen(0.5) ? value : undefined)
    const tokens = [
      'string',
      'number',
      'boolean',
      'version',
      'ipv4',
      'ipv4cidr',
      'ipv6',
      'base64',
      'Other',
      '',
    ]
    let isValid = 0
    for (let round = 0; round < 3_000; round += 1) {
      const variables = JSON.parse(
        JSON.stringify(
          Array.from({ length: random.below(5) }, () => ({
            name: text(),
            format: maybe(random.pick(tokens)),
            inputType: maybe(random.pick(['text', 'dropdown', 'multiline', 'constructor'])),
            regex: maybe(text()),
            required: maybe(true),
            hidden: maybe(true),
            immutable: maybe(true),
            isSensitive: maybe(true),
            defaultValue: maybe(text()),
            options: maybe(
              Array.from({ length: random.below(3) }, () => ({
                value: text(),
                default: random.isChosen(0.3),
              })),
            ),
          })),
        ),
      ) as Variable[]
      const rules = readVariables([profileOf([], variables), profileOf([], [], { uid: 'u2' })])
      const given = Array.from({ length: random.below(4) }, () => ({
        name: random.isChosen(0.7) ? (variables[0]?.name ?? '') : text(),
        value: text(),
        ...(random.isChosen(0.5) ? { profileUid: random.pick(['u1', 'u2', '', '__proto__']) } : {}),
      }))
      const results = rules.validate(given)
      expect(results.slice(0, given.length).map(({ name }) => name)).toEqual(given.map(({ name }) => name))
      for (const result of results) {
        expect(result.isValid).toBe(result.validationFailureReason === '')
        if (result.isValid) isValid += 1
      }
    }
    expect(isValid).toBeGreaterThan(1_000)
  })
})

describe('a declaration', () => {
  it.each<[string, Partial<Variable>[], string[]]>([
    ['is fine', [{ name: 'a.b-c_d', format: 'IPv4', defaultValue: '1.2.3.4' }], []],
    ['is fine where hidden and optional', [{ hidden: true }], []],
    ['has an unknown format', [{ format: 'int' }], ['VariableFormatUnknown variables[0]']],
    ['has an unknown input', [{ inputType: 'list' as 'text' }], ['VariableInputTypeUnknown variables[0]']],
    ['has no name', [{ name: '' }], ['VariableNameInvalid variables[0]']],
    ['has a name with a space', [{ name: 'a b' }], ['VariableNameInvalid variables[0]']],
    ['has a name with a brace', [{ name: 'a}' }], ['VariableNameInvalid variables[0]']],
    ['is there twice', [{}, { name: 'w' }, {}], ['VariableTwice variables[2]']],
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
      'has a default that is no option',
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
    ['has options that nobody sees', [{ options: [{ value: 'a' }] }], ['VariableOptionsUnused variables[0]']],
    [
      'has several problems, all told',
      [{ format: 'x', regex: '(', immutable: true }],
      [
        'VariablePatternInvalid variables[0]',
        'VariableFormatUnknown variables[0]',
        'VariableDefaultMissing variables[0]',
      ],
    ],
  ])('%s', (_name, variables, problems) => {
    expect(problemsOf(...variables)).toEqual(problems)
  })

  it('says why RE2 refuses its pattern, and which format was meant', () => {
    const { problems } = readVariables([profileOf([], [{ name: 'v', regex: 'a(?!b)', format: 'ipv4cdir' }])])
    expect(problems.map(({ message }) => message)).toEqual([
      'variable v has a regex that is refused by RE2: invalid or unsupported Perl syntax: `(?!`',
      'variable v has an unknown format ipv4cdir; did you mean ipv4cidr?',
    ])
  })

  it('cannot hold up a host with patterns that are slow to compile', () => {
    const variables = Array.from({ length: 1_000 }, (_, index) => ({
      name: `v${index}`,
      regex: `(?i)${'\\pL'.repeat(300)}${index}`,
    }))
    const begin = cpuNow()
    const { problems } = readVariables([profileOf([], variables)])
    expect(cpuNow() - begin).toBeLessThan(15_000)
    expect(problems.length).toBeGreaterThan(900)
  })
})
