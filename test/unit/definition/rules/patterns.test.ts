import { RE2JS } from 're2js'
import { describe, expect, it } from 'vitest'
import {
  createCountedPatterns,
  createPatterns,
  estimatePattern,
} from '../../../../src/definition/rules/pattern.ts'
import { createVariableRules, parseVariables } from '../../../../src/definition/rules/variables.ts'
import { costlyVariables } from '../../../support/costly-patterns.ts'
import { cpuNow } from '../../../support/cpu-time.ts'
import { profileOf } from '../../../support/definitions.ts'
import { createRandom } from '../../../support/random.ts'

const refusalOf = (source: string) => createPatterns().find(source).refusal

describe('a pattern', () => {
  it.each([
    ['of 2,000 instructions is accepted', '[a-z]{1000}[a-z]{998}', undefined],
    [
      'of more than 2,000 instructions is refused with their number',
      '[a-z]{1000}[a-z]{1000}',
      'needs 2002 instructions; 2000 are allowed, so repeat less',
    ],
    [
      'whose estimate is far too large is not compiled',
      '(?:x?y?){0,999}'.repeat(10),
      'needs about 69930 instructions; 2000 are allowed, so repeat less',
    ],
    [
      'with nested repetitions counts as their product',
      '(?:(?:xyz){30}){33}',
      'needs 2972 instructions; 2000 are allowed, so repeat less',
    ],
    [
      'whose ranges take long to compile is refused',
      `(?i)${'[B-\\x{1E000}]'.repeat(40)}`,
      'would take too long to compile; use fewer classes and ranges',
    ],
    ['with the same ranges is accepted if it is case-sensitive', '[B-\\x{1E000}]'.repeat(40), undefined],
  ])('a pattern %s', (_title, source, refusal) => {
    expect(refusalOf(source)).toBe(refusal)
  })

  it('a pattern of an allowed size is never refused by its estimate', () => {
    const pieces = [
      ...['a', '.', '\\d', '\\pL', '\\p{Greek}', '[a-z]', '[^\\pN]', '[]a]', '[[:alpha:]]', '[\\]a]', 'é'],
      ...['\\(', '\\x{1F600}', '\\Q(\\E', '\\Q)\\E', '\\b', '^', '$', '(?i)', '(?s)', '(', '(?:', '(?P<n>'],
      ...[')', ')', ')', '|', '*', '+', '?', '{3}', '{0,20}', '{2,}', '{900}', '{0,1}', 'x?', 'x*'],
    ]
    const random = createRandom(5)
    let compiled = 0
    for (let round = 0; round < 20_000; round += 1) {
      const source = random.text(pieces, 1 + random.below(16))
      const { size } = estimatePattern(source)
      if (size > 10_000) continue
      let real: number
      try {
        real = RE2JS.compile(source).programSize()
      } catch {
        continue
      }
      compiled += 1
      expect(real, source).toBeLessThanOrEqual(size + 3)
    }
    expect(compiled).toBeGreaterThan(2_000)
  })

  it.each([
    [
      'an IPv6 address',
      `^(?:(?:${'[0-9a-fA-F]{1,4}:'.repeat(7)}[0-9a-fA-F]{1,4})|(?:[0-9a-fA-F]{1,4}:){1,7}:)$`,
    ],
    ['a host name', '^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,63}$'],
    ['an address', '^((25[0-5]|2[0-4]\\d|1?\\d?\\d)(\\.|$)){4}$'],
    ['up to 900 letters', '^[a-z]{1,900}$'],
    ['any text without case', '(?i)^[\\pL\\pN _.-]+$'],
  ])('a pattern for %s, as profiles have it, is accepted', (_what, source) => {
    expect(refusalOf(source)).toBeUndefined()
  })
})

describe('the patterns of a definition', () => {
  it('the patterns of a definition have 20,000 instructions in total; the variable after them is refused by name', () => {
    const variables = Array.from({ length: 11 }, (_, index) => ({
      name: `v${index}`,
      regex: `^[a-z]{900}${index}$`,
    }))
    const { problems } = parseVariables([
      profileOf([], [...variables, ...variables.map((each, index) => ({ ...each, name: `w${index}` }))]),
    ])
    expect(problems).toEqual([])
    const more = Array.from({ length: 23 }, (_, index) => ({
      name: `v${index}`,
      regex: `^[a-z]{900}${index}$`,
    }))
    expect(parseVariables([profileOf([], more)]).problems).toMatchObject([
      {
        code: 'VariablePatternInvalid',
        place: 'profiles/u1/profile.json#spec.variables[22]',
        message: expect.stringMatching(
          /^variable v22 has a regex that needs \d+ instructions; together with all earlier patterns/,
        ),
      },
    ])
  })

  it('patterns that once ended a daemon are each refused within milliseconds', () => {
    const begin = cpuNow()
    const { problems } = parseVariables([profileOf([], costlyVariables)])
    expect(cpuNow() - begin).toBeLessThan(500)
    expect(problems).toHaveLength(20)
    expect(problems[7]).toMatchObject({
      code: 'VariablePatternInvalid',
      message: expect.stringContaining('variable v7 has a regex that needs about'),
    })
  })

  it('patterns that are slow to compile together cannot block a host', () => {
    const variables = Array.from({ length: 1_000 }, (_, index) => ({
      name: `v${index}`,
      regex: `(?i)${'[B-\\x{1E000}]'.repeat(20)}${index}`,
    }))
    const begin = cpuNow()
    const { problems } = parseVariables([profileOf([], variables)])
    expect(cpuNow() - begin).toBeLessThan(8_000)
    expect(problems.length).toBeGreaterThan(900)
  })

  it('a variable with a refused pattern accepts no value', () => {
    const rules = createVariableRules([profileOf([], costlyVariables.slice(0, 1))], createPatterns())
    expect(rules.validate([{ name: 'v0', value: 'x' }])[0]).toMatchObject({
      isValid: false,
      validationFailureReason: expect.stringMatching(
        /^v0 has a regex that needs about .*: correct the definition$/,
      ),
    })
  })
})

describe('variables', () => {
  const codesOf = (variables: readonly { name: string; defaultValue?: string }[]) =>
    parseVariables([
      profileOf([], variables.slice(0, 1_500)),
      profileOf([], variables.slice(1_500), { uid: 'u2' }),
    ]).problems.map(({ code, place, message }) => `${code} ${place}: ${message}`)

  it('a definition has at most 2,000 variables', () => {
    const many = Array.from({ length: 2_001 }, (_, index) => ({ name: `v${index}` }))
    expect(codesOf(many.slice(1))).toEqual([])
    expect(codesOf(many)).toEqual([
      'VariablesTooLarge profiles/u2/profile.json#spec.variables: up to here the definition has 2001 variables; 2000 are allowed',
    ])
  })

  it('the variables of a definition have texts of at most 4 MiB in total', () => {
    expect(codesOf([{ name: 'v', defaultValue: 'x'.repeat(4_200_000) }])).toEqual([
      'VariablesTooLarge profiles/u1/profile.json#spec.variables: up to here the definition has variables of 4200032 characters, as JSON; 4194304 are allowed',
    ])
  })
})

describe('patterns that were counted', () => {
  const variables = [
    { name: 'a', regex: '^[a-z]{1,900}$', defaultValue: 'ab' },
    { name: 'b', regex: '^(?:x?){900}$' },
  ]
  const profiles = [profileOf([], variables)]
  const counted = () => {
    const patterns = createPatterns()
    createVariableRules(profiles, patterns)
    return createCountedPatterns(new Map(patterns.verdicts()))
  }

  it('patterns that were counted before judge like new ones', () => {
    const given = [
      { name: 'a', value: 'abc' },
      { name: 'b', value: 'y' },
    ]
    const rules = createVariableRules(profiles, counted())
    expect(rules.validateWithin(given, { steps: 1_000_000 })).toEqual(
      createVariableRules(profiles, createPatterns()).validate(given),
    )
  })

  it('a call that would take more steps than are left is given up without a search', () => {
    const rules = createVariableRules(profiles, counted())
    const work = { steps: 200_000 }
    const begin = cpuNow()
    expect(rules.validateWithin([{ name: 'b', value: 'x'.repeat(60_000) }], work)).toBeUndefined()
    expect(cpuNow() - begin).toBeLessThan(50)
    expect(work.steps).toBeLessThan(0)
  })

  it('a pattern that was not counted is refused', () => {
    expect(createCountedPatterns(new Map()).find('a')).toEqual({ refusal: 'was never counted' })
  })
})

describe('a suggestion', () => {
  it('a definition with very many names gets no suggestion', () => {
    const variables = Array.from({ length: 2_000 }, (_, index) => ({ name: `${'n'.repeat(90)}${index}` }))
    const rules = createVariableRules([profileOf([], variables)], createPatterns())
    const begin = cpuNow()
    const given = Array.from({ length: 10 }, (_, index) => ({
      name: `${'n'.repeat(80)}x${index}`,
      value: '',
    }))
    expect(rules.validateWithin(given, { steps: 200_000 })?.[0]?.validationFailureReason).toMatch(
      'is not declared',
    )
    expect(cpuNow() - begin).toBeLessThan(500)
  })
})
