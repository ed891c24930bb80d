import { describe, expect, it } from 'vitest'
import type { DeclaringProfile, Variable, GivenVariable } from '../../../../src/definition/definition.ts'
import { parseVariables } from '../../../../src/definition/rules/variables.ts'
import { profileOf } from '../../../support/definitions.ts'
import { createRandom } from '../../../support/random.ts'

const validate = (profiles: readonly DeclaringProfile[], given: readonly GivenVariable[]) =>
  parseVariables(profiles).validate(given)

describe('a validation', () => {
  const profiles = [
    profileOf([], [{ name: 'a.b', regex: '^x' }, { name: 'shared' }, { name: 'needed', required: true }]),
    profileOf([], [{ name: 'shared', format: 'number' }], { uid: 'u2', name: 'second' }),
  ]

  it('a validation answers given variables first, then the others, with the profile of each', () => {
    expect(
      validate(profiles, [
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
    ['a name that is a property of objects', { name: '__proto__', value: '' }, '__proto__ is not declared'],
  ])('a validation reports %s', (_name, given, reason) => {
    expect(validate(profiles, [given])[0]).toMatchObject({
      isValid: false,
      validationFailureReason: reason,
    })
  })

  it('a validation accepts the first of two values and reports the second', () => {
    const given = ['x1', 'x2'].map((value) => ({ name: 'a.b', value }))
    expect(
      validate(profiles, given)
        .slice(0, 2)
        .map((each) => each.validationFailureReason),
    ).toEqual(['', 'a.b is given twice'])
  })

  it('a validation never throws and answers each given value', () => {
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
    const text = () => random.text(pieces, random.below(6))
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
      const rules = parseVariables([profileOf([], variables), profileOf([], [], { uid: 'u2' })])
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
