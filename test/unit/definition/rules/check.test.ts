import { describe, expect, it } from 'vitest'
import type { Definition } from '../../../../src/definition/definition.ts'
import { checkDefinition } from '../../../../src/definition/rules/check.ts'
import { definitionCodes } from '../../../../src/definition/rules/codes.ts'
import { cpuNow } from '../../../support/cpu-time.ts'
import {
  definitionOf,
  imagesIn,
  infrastructurePacks,
  packOf,
  profileOf,
  profilePack,
} from '../../../support/definitions.ts'
import { createRandom } from '../../../support/random.ts'

const check = (definition: Definition) =>
  checkDefinition(definition).map(
    ({ code, place }) => `${code} ${place.replace(/^profiles\/(u\d)\/profile\.json#spec\./, '$1 ')}`,
  )

const infrastructure = profileOf(infrastructurePacks, [], { type: 'infra' })
const addOn = (...packs: Parameters<typeof profilePack>[]) =>
  profileOf(
    packs.map((pack) => profilePack(...pack)),
    [],
    { uid: 'u2', name: 'second' },
  )
const withVersion = (version: string): Definition => ({ ...definitionOf([infrastructure]), version })

describe('a definition', () => {
  it.each<[string, Definition, string[]]>([
    ['of infrastructure and add-ons finds nothing', definitionOf([infrastructure, addOn(['a'])]), []],
    ['of add-ons alone finds nothing', definitionOf([addOn(['a'], ['b'])]), []],
    ['of both in one profile finds nothing', definitionOf([{ ...infrastructure, type: 'cluster' }]), []],
    ['without profiles', definitionOf([]), ['ProfileMissing definition.yaml#profiles']],
    [
      'with two infrastructure profiles',
      definitionOf([
        infrastructure,
        {
          ...addOn(['o', '', { layer: 'os' }], ['k', '', { layer: 'k8s' }], ['c', '', { layer: 'cni' }]),
          type: 'cluster',
        },
      ]),
      ['InfrastructureTwice u2 template'],
    ],
    [
      'with infrastructure in an add-on profile',
      definitionOf([infrastructure, addOn(['s', '', { layer: 'csi' }])]),
      [
        'InfrastructureTwice u2 template',
        ...['os', 'k8s', 'cni'].map(() => 'LayerMissing u2 template.packs'),
      ],
    ],
    [
      'whose infrastructure lacks a layer',
      definitionOf([{ ...infrastructure, packs: infrastructurePacks.slice(0, 2) }]),
      ['LayerMissing u1 template.packs'],
    ],
    [
      'with a layer twice',
      definitionOf([
        {
          ...infrastructure,
          packs: [...infrastructurePacks, profilePack('cni-other', '', { layer: 'cni' })],
        },
      ]),
      ['LayerTwice u1 template.packs[3]'],
    ],
    [
      'with a pack twice in a profile',
      definitionOf([addOn(['a'], ['a'])], [packOf('a')]),
      ['PackTwice u2 template.packs[1]'],
    ],
    [
      'with a pack twice over profiles, in any version',
      definitionOf([infrastructure, addOn(['edge-k3s'])]),
      ['PackTwice u2 template.packs[0]'],
    ],
    [
      'with two folders of a pack',
      definitionOf([addOn(['a'])], [packOf('a'), packOf('a', { place: 'packs/b' })]),
      ['PackTwice packs/b'],
    ],
    ['with a missing pack', definitionOf([addOn(['a'])], []), ['PackMissing u2 template.packs[0]']],
    [
      'with another version of a pack',
      definitionOf([addOn(['a'])], [packOf('a', { version: '2.0.0' })]),
      ['PackMissing u2 template.packs[0]', 'PackUnused packs/a-2.0.0'],
    ],
    ['with a pack that is only manifests', definitionOf([addOn(['a', '', { type: 'manifest' }])], []), []],
    [
      'with an unused pack',
      definitionOf([addOn(['a'])], [packOf('a'), packOf('b')]),
      ['PackUnused packs/b-1.0.0'],
    ],
    [
      'with two profiles of one uid',
      definitionOf([addOn(['a']), { ...addOn(['b']), place: 'profiles/u3/profile.json' }]),
      ['ProfileTwice profiles/u3/profile.json#metadata.uid'],
    ],
    [
      'with malformed versions',
      { ...definitionOf([{ ...addOn(['a', '', { tag: 'latest' }]), version: '' }]), version: '../1' },
      [
        'VersionInvalid definition.yaml#version',
        'VersionInvalid u2 version',
        'VersionInvalid u2 template.packs[0].tag',
        'VersionInvalid packs/a-latest/pack.json#version',
      ],
    ],
    [
      'with values that are not valid YAML',
      definitionOf([addOn(['a', 'b: [1\nc: 2'])]),
      ['YamlInvalid u2 template.packs[0].values:2:1'],
    ],
    [
      'with values that are a list',
      definitionOf([addOn(['a', '- 1'])]),
      ['ValuesNotMapping u2 template.packs[0].values:1:1'],
    ],
    [
      'with values of two documents',
      definitionOf([addOn(['a', 'a: 1\n---\nb: 2'])]),
      ['ValuesNotMapping u2 template.packs[0].values:3:1'],
    ],
    ['with values of comments alone', definitionOf([addOn(['a', '# nothing\n'])]), []],
    [
      'with a key twice',
      definitionOf([addOn(['a', 'a: 1\nb: 2\na: 3'])]),
      ['YamlKeyTwice u2 template.packs[0].values:3:1'],
    ],
    [
      'with an alias without an anchor',
      definitionOf([addOn(['a', 'a: *b'])]),
      ['YamlAliasInvalid u2 template.packs[0].values:1:4'],
    ],
    [
      'with an alias inside its own anchor',
      definitionOf([addOn(['a', 'a: &b [*b]'])]),
      ['YamlAliasInvalid u2 template.packs[0].values:1:8'],
    ],
    ['with an unknown tag', definitionOf([addOn(['a', 'a: !vault x'])]), []],
    ['with a key named __proto__', definitionOf([addOn(['a', '__proto__: { x: 1 }\nconstructor: 1'])]), []],
    [
      'with a manifest whose third document is not valid YAML',
      definitionOf(
        [addOn(['a'])],
        [
          packOf('a', {
            manifests: [{ place: 'packs/a-1.0.0/manifests/m.yaml', content: 'a: 1\n---\nb: 2\n---\nc: "' }],
          }),
        ],
      ),
      ['YamlInvalid packs/a-1.0.0/manifests/m.yaml:5:5'],
    ],
    [
      'with a manifest in a profile that is not valid YAML',
      definitionOf([addOn(['a', '', { manifests: [{ name: 'm', content: 'a: b: c' }] }])]),
      ['YamlInvalid u2 template.packs[0].manifests[0].content:1:4'],
    ],
    [
      'with an unused variable and an undeclared one',
      definitionOf([{ ...addOn(['a', 'a: "{{ .spectro.var.y }}"']), variables: [{ name: 'x' }] }]),
      ['VariableUndeclared u2 template.packs[0].values:1:5', 'VariableUnused u2 variables[0]'],
    ],
    [
      'whose profiles use each other\u2019s variables',
      definitionOf([
        { ...infrastructure, variables: [{ name: 'x' }] },
        addOn(['a', 'a: "{{ .spectro.var.x }}"']),
      ]),
      ['VariableUndeclared u2 template.packs[0].values:1:5', 'VariableUnused u1 variables[0]'],
    ],
    [
      'whose variables are used in manifests',
      definitionOf([
        {
          ...addOn(['a', '', { manifests: [{ name: 'm', content: 'a: "{{ .spectro.var.x }}"' }] }]),
          variables: [{ name: 'x' }],
        },
      ]),
      [],
    ],
  ])('the check of a definition %s', (_name, definition, problems) => {
    expect(check(definition)).toEqual(problems)
  })

  it.each(['0.30.0-5.5.2026', 'v1.1.0', '1.16', '1', '1.33.x', '1.0.0+build', '2024_1', '1'.repeat(128)])(
    'a definition may have the version %s',
    (version) => {
      expect(check(withVersion(version))).toEqual([])
    },
  )

  it.each([
    '',
    'v',
    'latest',
    '-1',
    '1.',
    '1/2',
    '1 2',
    '1\n',
    '..',
    '1..',
    '1:2',
    '1'.repeat(129),
    '\u0661',
  ])('a definition may not have the version %j', (version) => {
    expect(check(withVersion(version))).toEqual(['VersionInvalid definition.yaml#version'])
  })

  it('each problem has the severity of its code', () => {
    const problems = checkDefinition(
      definitionOf([addOn(['a', 'a: "{{.spectro.var.y}}"\na: {{ .spectro.x }}'])], [packOf('b')]),
    )
    expect(problems.length).toBeGreaterThan(4)
    for (const { code, severity } of problems)
      expect(severity).toBe(definitionCodes[code as keyof typeof definitionCodes].severity)
  })

  it('a thousand problems are listed, and how many more there are', () => {
    const values = Array.from({ length: 1_500 }, (_, index) => `k${index}: "{{ .spectro.var.x }}"`).join('\n')
    const problems = checkDefinition(definitionOf([addOn(['a', values])]))
    expect(problems.length).toBe(1_001)
    expect(problems.at(-1)).toMatchObject({
      code: 'TooManyProblems',
      message: '500 more problems are not listed; correct these and check again',
    })
  })

  it('any number of warnings is accepted, and they hide no error', () => {
    const comments = `a: 1\n#${'{{ .spectro.system.user.name }}'.repeat(1_500)}\n`
    const problems = checkDefinition(definitionOf([addOn(['a', comments])]))
    expect(problems.length).toBe(1_001)
    expect(problems.every(({ severity }) => severity === 'warning')).toBe(true)
    expect(problems.at(-1)?.message).toBe('500 more warnings are not listed; correct these and check again')
    const withError = checkDefinition(definitionOf([addOn(['a', `${comments}b: "{{ .spectro.var.x }}"`])]))
    expect(withError.filter(({ severity }) => severity === 'error').map(({ code }) => code)).toEqual([
      'VariableUndeclared',
    ])
  })
})

describe('a hostile text', () => {
  const bomb = [
    'a0: &a0 [x, x, x, x, x, x, x, x, x, x]',
    ...Array.from({ length: 9 }, (_, index) => `a${index + 1}: &a${index + 1} [${`*a${index},`.repeat(10)}]`),
  ].join('\n')
  const many = Array.from(
    { length: 30_000 },
    (_, index) => `k${index}: {{ .spectro.pack.a.k${index + 1} }}`,
  ).join('\n')
  it.each<[string, string, RegExp]>([
    ['of aliases that expand to a billion values', bomb, /^YamlTooLarge/],
    ['of endlessly nested brackets', 'a: '.concat('['.repeat(100_000)), /^YamlInvalid/],
    ['of endlessly nested braces', 'a: '.concat('{a: '.repeat(50_000)), /^YamlInvalid/],
    [
      'of endlessly nested blocks',
      Array.from({ length: 3_000 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n'),
      /^(?:YamlInvalid|$)/,
    ],
    ['of endlessly nested lists', `a:\n  ${'- '.repeat(50_000)}x`, /^(?:YamlInvalid|$)/],
    ['of 30,000 equal keys', 'a: 1\n'.repeat(30_000), /^YamlKeyTwice/],
    ['of macros that follow each other', many, /^MacroPathEmpty/],
    [
      'of 30,000 anchors',
      Array.from({ length: 30_000 }, (_, index) => `k${index}: &a${index} 1`).join('\n'),
      /^$/,
    ],
    ['of unclosed quotes', 'a: "'.concat('x\n'.repeat(100_000)), /^YamlInvalid/],
  ])('a hostile text %s is checked in bounded time', (_name, values, first) => {
    const begin = cpuNow()
    const problems = checkDefinition(definitionOf([addOn(['a', values])]))
    // A quadratic check takes minutes, a linear one about a second on an idle machine.
    expect(cpuNow() - begin).toBeLessThan(10_000)
    expect(problems[0]?.code ?? '').toMatch(first)
  })

  it('no text makes the check throw', () => {
    const random = createRandom(21)
    const pieces = [
      'a',
      'b: ',
      ': ',
      '\n',
      '  ',
      '- ',
      '? ',
      '"',
      "'",
      '|',
      '>',
      '#',
      '[',
      ']',
      '{',
      '}',
      '{{ .spectro.var.x }}',
      '{{.spectro.pack.a.b}}',
      '{{ .spectro',
      '&a ',
      '*a ',
      '!!int ',
      '%YAML 1.1\n',
      '---\n',
      '...\n',
      '<<: ',
      '\t',
      '\0',
      '\ud800',
      '@',
      '`',
    ]
    for (let round = 0; round < 1_500; round += 1) {
      const values = random.text(pieces, random.below(25))
      const pack = packOf('a', {
        values,
        manifests: [{ place: 'packs/a-1.0.0/manifests/m.yaml', content: values }],
      })
      const profile = addOn(['a', random.isChosen(0.5) ? values : ''])
      imagesIn(definitionOf([profile], [pack]))(profile, 0, pack)
    }
  })
})

/** Text like that of generated resource definitions: mostly descriptions. */
const resourceDefinition = (size: number) => {
  const property = [
    '            thing:',
    '              description: |-',
    '                What a property is for, as it is written in most definitions of resources, at some length,',
    '                since generators copy all that people write into their types.',
    '              type: string',
    "              default: 'also: something in quotes that goes on for quite a while, as these do'",
  ].join('\n')
  const document = `---\nkind: CustomResourceDefinition\nspec:\n  schema:\n    properties:\n${property.replaceAll('thing', 'other')}\n${property}\n`
  return document.repeat(Math.ceil(size / document.length))
}

describe('a manifest of 2.5 MB', () => {
  const big = (content: string) =>
    definitionOf(
      [{ ...addOn(['a']), variables: [{ name: 'x', defaultValue: 'text' }] }],
      [packOf('a', { manifests: [{ place: 'm.yaml', content }] })],
    )

  it('a check of 2.5 MB takes about ten times as long as one of 250 kB', () => {
    const time = (size: number) => {
      const definition = big(`${resourceDefinition(size)}---\na: {{ .spectro.var.x }}\n`)
      const begin = cpuNow()
      expect(check(definition)).toEqual([])
      return cpuNow() - begin
    }
    time(250_000)
    const small = time(250_000)
    const large = time(2_500_000)
    // Ten times is linear; a hundred times would be quadratic.
    expect(large / small).toBeLessThan(40)
    expect(large).toBeLessThan(10_000)
  })

  it('a manifest full of macros is checked in bounded time', () => {
    const line = 'a: "{{ .spectro.var.x }}-{{ .spectro.var.x }}"\n---\n'
    const begin = cpuNow()
    expect(check(big(line.repeat(10_000)))).toEqual([])
    expect(check(big(`a: |\n${'  {{ .spectro.var.x }}\n'.repeat(100_000)}`))).toEqual([])
    expect(cpuNow() - begin).toBeLessThan(8_000)
  })
})
