import { describe, expect, it } from 'vitest'
import type { Pack, PackDependency } from '../../../src/definition/definition.ts'
import { checkDefinition } from '../../../src/definition/rules/check.ts'
import { definitionOf, packOf, profileOf, profilePack } from '../../support/definitions.ts'

const dependency = (rest: Partial<PackDependency>): PackDependency => ({
  ...{ packName: 'store', layer: '', minVersion: '', maxVersion: '', type: 'required' },
  ...rest,
})

/** Problems of a profile with the pack `app`, which has a dependency, and maybe with `store` in a version. */
function problemsOf(app: Partial<Pack>, { store, values = '' }: { store?: string; values?: string } = {}) {
  const packs = [profilePack('app', values), ...(store ? [profilePack('store', '', { tag: store })] : [])]
  const folders = [packOf('app', app), ...(store ? [packOf('store', { version: store })] : [])]
  return checkDefinition(definitionOf([profileOf(packs)], folders)).map(
    ({ code, severity, place, message }) => `${code} ${severity} ${place.split('/').at(-1)}: ${message}`,
  )
}

const place = 'pack.json#constraints.dependencies[0]'

describe('a dependency of a pack', () => {
  it.each<[string, Partial<PackDependency>, string | undefined, string[]]>([
    [
      'that is required and missing is an error',
      { minVersion: '1.2', maxVersion: '1.8', layer: 'csi' },
      undefined,
      [
        `PackDependencyMissing error ${place}: pack app needs pack store 1.2 to 1.8 of layer csi, which no profile contains; add it`,
      ],
    ],
    ['that is required and present is accepted', {}, '0.1', []],
    [
      'that is required but present in another layer is missing',
      { layer: 'csi' },
      '1.0',
      [
        `PackDependencyMissing error ${place}: pack app needs pack store of layer csi, which no profile contains; add it`,
      ],
    ],
    [
      'that is too old is an error',
      { minVersion: '1.10.0' },
      'v1.9.7',
      [
        `PackDependencyVersion error ${place}: pack app works with pack store from 1.10.0; a profile has v1.9.7`,
      ],
    ],
    [
      'that is too new is an error, also if it is optional',
      { maxVersion: '1.18', type: 'optional' },
      '1.19.0',
      [
        `PackDependencyVersion error ${place}: pack app works with pack store up to 1.18; a profile has 1.19.0`,
      ],
    ],
    ['within its highest minor version is accepted', { maxVersion: '1.18' }, '1.18.6', []],
    [
      'whose version is not semantic is compared by its numbers',
      { minVersion: '0.30' },
      '0.30.0-5.5.2026',
      [],
    ],
    ['that is optional may be missing', { type: 'optional', minVersion: '1.0' }, undefined, []],
    [
      'that is not supported is an error if its version is in the range',
      { type: 'notSupported', minVersion: '1.0', maxVersion: '2.0' },
      '1.5',
      [
        `PackDependencyVersion error ${place}: pack app does not work with pack store 1.0 to 2.0; a profile has 1.5`,
      ],
    ],
    [
      'that is not supported may be outside the range',
      { type: 'notSupported', minVersion: '2.0' },
      '1.5',
      [],
    ],
    ['of type upgrade is not checked', { type: 'upgrade', minVersion: '9.0' }, '1.5', []],
  ])('a dependency %s', (_title, rest, store, expected) => {
    expect(problemsOf({ dependencies: [dependency(rest)] }, store ? { store } : {})).toEqual(expected)
  })
})

const schemaOf = (text: string) => ({ place: 'packs/app-1.0.0/schema.yaml', content: text })
const line = (template: string, path = 'charts.app.value') => schemaOf(`${path}:\n  schema: '${template}'\n`)

describe('a value that schema.yaml describes', () => {
  const judge = (template: string, value: string) =>
    problemsOf({ schema: line(template) }, { values: `charts: { app: { value: ${value} } }` })

  it.each([
    ['{{ format "${string}" }}', '"anything"', ''],
    ['{{ format "${string:/^[a-z]{2,3}$/}" }}', 'ab', ''],
    ['{{ format "${string:/^[a-z]{2,3}$/}" }}', 'abcd', 'must match the regex ^[a-z]{2,3}$'],
    ['{{ format "${string:/^(a|b)$/}" | hints "a or b" "or" }}', 'b', ''],
    ['{{ format "${number}" }}', '5000', ''],
    ['{{ format "${number}" }}', 'five', 'must be a number such as 8080 or -0.5'],
    ['{{ format "${number:[5000-5005]}" }}', '5006', 'must be a number from 5000 to 5005'],
    [
      '{{ format "${number:[0-9007199254740992]}" }}',
      '9007199254740993',
      'must be a number from 0 to 9007199254740992',
    ],
    [
      '{{ format "${number:[-9007199254740992-0]}" }}',
      '"-9007199254740993"',
      'must be a number from -9007199254740992 to 0',
    ],
    ['{{ format "${number:[0.5-9223372036854775807]}" }}', '9223372036854775807', ''],
    [
      '{{ format "${number:[0.5-9223372036854775807]}" }}',
      '0.4',
      'must be a number from 0.5 to 9223372036854775807',
    ],
    ['{{ format "${boolean}" }}', 'true', ''],
    ['{{ format "${bool}" }}', 'maybe', 'must be true or false'],
    ['{{format "${list:[PACK, GIT,CHART]}"}}', 'GIT', ''],
    ['{{ format "${list:[PACK,GIT,CHART]}" }}', 'SVN', 'must be one of PACK, GIT, CHART'],
    ['{{ format "${ipv4}" }}', '10.0.0.256', 'must be an IPv4 address such as 192.0.2.1'],
    ['{{ format "${ipv4} - ${ipv4}" }}', '10.10.10.10 - 10.10.10.255', ''],
    [
      '{{ format "${ipv4} - ${ipv4}" }}',
      '10.10.10.10-10.10.10.255',
      'must contain " - " where its format has it',
    ],
    ['{{ required | format "${version}" }}', 'v1.2.3', ''],
    ['{{ format "${password:/^.{8,}$/}" }}', 'short', 'must match the regex ^.{8,}$'],
    ['{{ required }}', '""', 'is required by schema.yaml of the pack'],
    ['{{ required }}', '"{{ .spectro.system.cluster.name }}"', ''],
    ['{{ format "${number}" }}', '"{{ .spectro.system.cluster.name }}"', ''],
    ['{{ format "${number}" }}', '', ''],
  ])('the schema %s checks the value %s', (template, value, reason) => {
    const suffix = reason.startsWith('is ') ? '' : ' (schema.yaml of the pack)'
    expect(judge(template, value)).toEqual(
      reason === ''
        ? []
        : [
            `PackValueInvalid error profile.json#spec.template.packs[0].values: charts.app.value ${reason}${suffix}`,
          ],
    )
  })

  it('a schema may apply to each item of a list, or to a value below a key with dots', () => {
    const schema = schemaOf(
      "a.$[].port:\n  schema: '{{ format \"${number}\" }}'\nb.io/name.x:\n  schema: '{{ required }}'\n",
    )
    expect(
      problemsOf({ schema }, { values: 'a: [{ port: 1 }, { port: x }]\nb.io/name: { x: 1 }\n' }),
    ).toEqual([expect.stringContaining('a.$[].port must be a number')])
  })

  it('a refused value is a warning if it comes from the pack, and an error if it comes from the profile', () => {
    const app = { schema: line('{{ required }}', 'a'), values: 'a: ""\n' }
    expect(problemsOf(app)).toMatchObject([expect.stringMatching(/^PackValueInvalid warning values.yaml/)])
    expect(problemsOf(app, { values: 'a: ""' })).toMatchObject([expect.stringMatching(/ warning /)])
    expect(problemsOf(app, { values: 'b: 1' })).toMatchObject([expect.stringMatching(/ error /)])
  })

  it('a read-only value may not be changed', () => {
    const app = { schema: line('{{ readonly }}', 'a'), values: 'a: 1\nb: 1\n' }
    expect(problemsOf(app, { values: 'a: 1\nb: 2' })).toEqual([])
    expect(problemsOf(app, { values: 'a: 2\nb: 1' })).toEqual([
      expect.stringContaining('a may not be changed (schema.yaml of the pack)'),
    ])
  })

  it.each([
    ['invalid YAML', 'a: {', 'is not a mapping of paths to schemas'],
    ['a list', '- a', 'is not a mapping of paths to schemas'],
    ['an entry without schema', 'a: 1', 'a has no schema'],
    ['an entry without template', "a: { schema: 'required' }", 'a is not written as {{ ... }}'],
    ['an unknown word', "a: { schema: '{{ optional }}' }", 'a has the unknown word optional'],
    ['an unknown format', 'a: { schema: \'{{ format "${colour}" }}\' }', 'a has the unknown format colour'],
    [
      'an unclosed regex',
      'a: { schema: \'{{ format "${string:/a}" }}\' }',
      'a has a format that does not end with /}',
    ],
    [
      'a pattern that would take all memory',
      `a: { schema: '{{ format "\${string:/(?:${'x?'.repeat(40)}){0,999}/}" }}' }`,
      'a has a regex that needs about',
    ],
  ])('a schema.yaml with %s is not used, which is a warning', (_what, content, message) => {
    expect(problemsOf({ schema: schemaOf(content) }, { values: 'a: 1' })).toEqual([
      expect.stringMatching(/^PackSchemaInvalid warning schema.yaml/),
    ])
    expect(problemsOf({ schema: schemaOf(content) }, { values: 'a: 1' })[0]).toContain(message)
  })
})
