import { performance } from 'node:perf_hooks'
import type { Profile, Variable } from '../src/definition/definition.ts'
import { parseVariables } from '../src/definition/rules/variables.ts'
import type { Figure, Measure } from './figure.ts'
import { spread } from './numbers.ts'

const count = 1_000

/**
 * Time to validate 1,000 variables of all formats with 100 different patterns: with the definition parsed before, and
 * with parsing it each time.
 */
export const measureDefinitionRules: Measure = async (rig): Promise<Figure[]> => {
  const rounds = rig.isQuick ? 20 : 200
  rig.say('definition-rules: 1,000 variables')
  const profile = makeProfile()
  const given = profile.variables.map(({ name, defaultValue = '' }) => ({
    name,
    profileUid: profile.uid,
    value: defaultValue,
  }))

  const firstParse = performance.now()
  const rules = parseVariables([profile])
  const parseMs = performance.now() - firstParse
  const firstCall = performance.now()
  const results = rules.validate(given)
  const firstMs = performance.now() - firstCall
  const invalid = results.filter(({ isValid }) => !isValid).length
  if (invalid > 0)
    throw new Error(`${invalid} of the variables are not valid; the figure would be the time of refusals`)

  const validate: number[] = []
  const parseAndValidate: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    validate.push(time(() => rules.validate(given)))
    parseAndValidate.push(time(() => parseVariables([profile]).validate(given)))
  }
  return [
    {
      name: 'definition-rules: 1,000 variables, definition parsed before',
      value: spread(validate),
      unit: 'ms',
      target: '≤ 20',
      note: `the first call of a fresh process ${firstMs.toFixed(1)} ms`,
    },
    {
      name: 'definition-rules: 1,000 variables, parsing the definition too',
      value: spread(parseAndValidate),
      unit: 'ms',
      note: `parsing it for the first time in a fresh process ${parseMs.toFixed(1)} ms, most of it for 100 patterns`,
    },
  ]
}

function time(work: () => unknown): number {
  const begin = performance.now()
  work()
  return performance.now() - begin
}

/** Variables of every format, each with a valid default; one in ten has a pattern of its own. */
function makeVariables(): Variable[] {
  const kinds: readonly Omit<Variable, 'name'>[] = [
    { format: 'string', defaultValue: 'some text' },
    { format: 'number', defaultValue: '8080' },
    { format: 'boolean', defaultValue: 'true' },
    { format: 'version', defaultValue: '1.33.3-rc.1+build.7' },
    { format: 'ipv4', defaultValue: '192.0.2.17' },
    { format: 'ipv4cidr', defaultValue: '192.0.2.0/24' },
    { format: 'ipv6', defaultValue: '2001:db8::192.0.2.17' },
    { format: 'base64', defaultValue: 'c29tZSB0ZXh0IHRoYXQgaXMgYSBiaXQgbG9uZ2Vy' },
    {
      inputType: 'dropdown',
      options: [{ value: 'small' }, { value: 'middle' }, { value: 'large' }],
      defaultValue: 'large',
    },
  ]
  return Array.from({ length: count }, (_, index): Variable => {
    const name = `group${index % 20}.variable-${index}`
    // Every tenth has a pattern of its own, as names of hosts have.
    if (index % 10 === 9)
      return {
        name,
        required: true,
        regex: `^site${index}-[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`,
        defaultValue: `site${index}-host-17.factory.example.com`,
      }
    return { name, required: index % 2 === 0, ...kinds[index % kinds.length] }
  })
}

function makeProfile(): Profile {
  const texts = {
    place: 'profiles/u1/profile.json',
    uid: 'u1',
    name: 'bench',
    version: '1.0.0',
    description: '',
  }
  return { ...texts, tags: [], type: 'cluster', packs: [], variables: makeVariables() }
}
