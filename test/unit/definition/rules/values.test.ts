import { describe, expect, it } from 'vitest'
import type { DeclaringProfile, Variable, GivenVariable } from '../../../../src/definition/definition.ts'
import { parseVariables } from '../../../../src/definition/rules/variables.ts'
import { cpuNow } from '../../../support/cpu-time.ts'
import { dropdown, profileOf } from '../../../support/definitions.ts'

const validate = (profiles: readonly DeclaringProfile[], given: readonly GivenVariable[]) =>
  parseVariables(profiles).validate(given)

const reasonOf = (variable: Partial<Variable>, value?: string) => {
  const profile = profileOf([], [{ name: 'v', ...variable }])
  const [result] = validate([profile], value === undefined ? [] : [{ name: 'v', profileUid: 'u1', value }])
  expect(result?.isValid).toBe(result?.validationFailureReason === '')
  return result?.validationFailureReason
}

describe('the value of a variable', () => {
  it.each<[string, Partial<Variable>, string | undefined, string]>([
    ['of the right format is accepted', { format: 'number' }, '12', ''],
    ['of another format is refused', { format: 'Number' }, 'abc', 'v must be a number such as 8080 or -0.5'],
    ['is text if the format is unknown', { format: 'colour' }, 'red', ''],
    ['may be empty if it is not required', { format: 'number', regex: '^1$' }, '', ''],
    ['may not be empty if it is required', { required: true }, '', 'v is required'],
    ['must be given if it is required', { required: true }, undefined, 'v is required'],
    ['may not be emptied if it is required', { required: true, defaultValue: 'x' }, '', 'v is required'],
    ['that is not given is the default', { required: true, defaultValue: 'x' }, undefined, ''],
    [
      'that is the default is judged',
      { format: 'ipv4', defaultValue: 'x' },
      undefined,
      'v must be an IPv4 address such as 192.0.2.1',
    ],
    ['of one space is not empty', { required: true }, ' ', ''],
    ['that is hidden may be required', { hidden: true, required: true, defaultValue: 'x' }, undefined, ''],
    ['that is immutable may be given unchanged', { immutable: true, defaultValue: 'x' }, 'x', ''],
    ['that is immutable may be omitted', { immutable: true, required: true, defaultValue: 'x' }, '', ''],
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
    [
      'is not the mask of an export',
      { isSensitive: true, required: true, defaultValue: '********' },
      undefined,
      'v is required',
    ],
    [
      'is not the mask of a reply',
      { isSensitive: true },
      '********',
      'v consists of stars only, as a masked value does: give the value itself',
    ],
    ['may consist of stars if it is not sensitive', {}, '********', ''],
    ['is one of the options', dropdown('a', 'b'), 'b', ''],
    ['that is not an option is refused', dropdown('a', 'b'), 'B', 'v must be one of a, b'],
    [
      'may be the option marked as default',
      { ...dropdown(), required: true, options: [{ value: 'a', default: true }] },
      undefined,
      '',
    ],
    ['need not be an option without a dropdown', { options: [{ value: 'a' }] }, 'b', ''],
    ['is one line', {}, 'a\nb', 'v must be a single line'],
    ['is one line in a dropdown', { inputType: 'text' }, 'a\rb', 'v must be a single line'],
    ['may have several lines if the input is multiline', { inputType: 'multiline' }, 'a\nb', ''],
    ['in base64 may have line breaks', { inputType: 'multiline', format: 'base64' }, 'QUJD\nQUJD', ''],
    ['is at most 65,536 characters long', {}, 'x'.repeat(65_537), 'v must be at most 65536 characters long'],
    ['of 65,536 characters is accepted', {}, 'x'.repeat(65_536), ''],
    ['matches its regex anywhere', { regex: '[a-z]+' }, '1a2', ''],
    [
      'must match an anchored regex as a whole',
      { regex: '^[a-z]+$' },
      '1a2',
      'v must match the regex ^[a-z]+$',
    ],
    [
      'with a final line break does not match $ before it',
      { regex: '^a$', inputType: 'multiline' },
      'a\n',
      'v must match the regex ^a$',
    ],
    ['may match classes and flags of RE2', { regex: '(?i)^[[:alpha:]]+\\pL$' }, 'ABc\u00e9', ''],
    ['matches \\d only with ASCII digits', { regex: '^\\d$' }, '\u0663', 'v must match the regex ^\\d$'],
    ['is matched by code points', { regex: '^.$' }, '\u{1F600}', ''],
    [
      'is refused if RE2 refuses the regex',
      { regex: '(?=a)' },
      'b',
      'v has a regex that is refused by RE2: invalid or unsupported Perl syntax: `(?=`: correct the definition',
    ],
    [
      'must have the format and match the regex',
      { format: 'number', regex: '^[0-9]{4}$' },
      '80',
      'v must match the regex ^[0-9]{4}$',
    ],
  ])('a value %s', (_name, variable, value, reason) => {
    expect(reasonOf(variable, value)).toBe(reason)
  })

  it.each<[string, Partial<Variable>]>([
    ['format', { format: 'number' }],
    ['regex', { regex: '^x$' }],
    ['immutable', { immutable: true, defaultValue: 'topsecret-default' }],
    ['options', { ...dropdown('topsecret-default', 'b') }],
    ['lines', { regex: 'zzz', inputType: 'multiline' }],
    ['length', { regex: 'zzz' }],
  ])('a sensitive value is in no reason (%s)', (_name, variable) => {
    for (const value of ['topsecret', `topsecret\n${'x'.repeat(70_000)}`]) {
      const profile = profileOf([], [{ name: 'v', isSensitive: true, ...variable }])
      const results = validate(
        [profile],
        [
          { name: 'v', value },
          { name: 'v', value },
          { name: 'w', value },
        ],
      )
      expect(results.map(({ isValid }) => isValid)).toEqual([false, false, false])
      expect(JSON.stringify([results, parseVariables([profile]).problems])).not.toContain('topsecret')
    }
  })

  it('a value is judged in linear time by a pattern that would block a backtracking engine', () => {
    const begin = cpuNow()
    expect(reasonOf({ regex: '^(a+)+$' }, `${'a'.repeat(65_000)}!`)).toMatch('must match')
    expect(reasonOf({ regex: '(x+x+)+y' }, 'x'.repeat(65_000))).toMatch('must match')
    expect(reasonOf({ regex: '^(([a-z])+.)+[A-Z]([a-z])+$' }, 'a'.repeat(65_000))).toMatch('must match')
    expect(cpuNow() - begin).toBeLessThan(2_000)
  })

  it('a value is refused if values and patterns together would take too long', () => {
    const regex = '(.*a){280}'
    const variables = Array.from({ length: 20 }, (_, index) => ({ name: `v${index}`, regex }))
    const given = variables.map(({ name }) => ({ name, value: `${'ab'.repeat(5_000)}!` }))
    const begin = cpuNow()
    const results = validate([profileOf([], variables)], given)
    expect(cpuNow() - begin).toBeLessThan(4_000)
    expect(results.at(-1)?.validationFailureReason).toBe(
      'v19 is too long for its regex, together with all earlier values',
    )
  })
})
