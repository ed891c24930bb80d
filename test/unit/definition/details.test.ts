import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import type { Definition, Variable } from '../../../src/definition/definition.ts'
import { ClusterProfileDetail } from '../../../src/definition/schemas.ts'
import { detailsOf } from '../../../src/definition/slots/details.ts'
import { masked } from '../../../src/base/mask.ts'
import { definitionOf, imagesIn, packOf, profileOf, profilePack } from '../../support/definitions.ts'

const details = (definition: Definition) =>
  detailsOf(definition, {
    images: imagesIn(definition),
    logo: ({ logo }) => (logo ? `data:${logo}` : ''),
  })
const first = (definition: Definition) => details(definition)[0]!

describe('the details of a definition', () => {
  it('the details of a profile have its fields', () => {
    const profile = profileOf([], [], {
      ...{ uid: 'u7', name: 'edge', version: '2.1.0', type: 'infra', description: 'For shops' },
      tags: ['line:3', 'shop'],
    })
    expect(details(definitionOf([profile]))).toEqual([
      {
        profileUid: 'u7',
        profileName: 'edge',
        profileVersion: '2.1.0',
        profileType: 'infra',
        profileDescription: 'For shops',
        profileTags: 'line:3,shop',
        packs: [],
        variables: [],
      },
    ])
  })

  it('the details of a pack have the fields of its folder', () => {
    const profile = profileOf([profilePack('a', 'x: 1\n', { tag: '1.2.3', layer: 'cni' })])
    const manifest = 'spec: { containers: [{ image: "b:2" }] }'
    const folder = packOf('a', {
      version: '1.2.3',
      logo: 'logo.png',
      manifests: [{ place: 'm', content: manifest }],
    })
    expect(first(definitionOf([profile], [packOf('a'), folder])).packs).toEqual([
      {
        name: 'a',
        version: '1.2.3',
        layer: 'cni',
        values: 'x: 1\n',
        logo: 'data:logo.png',
        images: ['b:2'],
        guessedImages: [],
      },
    ])
  })

  it('the details of a pack without a folder have only the fields of the profile', () => {
    const { packs } = first(definitionOf([profileOf([profilePack('a')])], []))
    expect(packs).toEqual([
      { name: 'a', version: '1.0.0', layer: 'addon', values: '', logo: '', images: [], guessedImages: [] },
    ])
  })

  it('the details distinguish packs of one name by their display names', () => {
    const packs = [profilePack('a'), profilePack('a', '', { displayName: 'a-2' })]
    expect(first(definitionOf([profileOf(packs)])).packs).toMatchObject([
      { name: 'a' },
      { name: 'a', displayName: 'a-2' },
    ])
    expect(first(definitionOf([profileOf(packs)])).packs[0]).not.toHaveProperty('displayName')
  })

  it('the details list guessed images apart from named ones, with secrets masked', () => {
    const values =
      'charts: { x: { image: { repository: a/hunter2, tag: v1 }, y: { image: { repository: b } } } }\n'
    const variables = [{ name: 's', isSensitive: true, defaultValue: 'hunter2' }]
    expect(first(definitionOf([profileOf([profilePack('a', values)], variables)])).packs[0]).toMatchObject({
      images: [],
      guessedImages: [
        { image: `a/${masked}:v1`, isTagKnown: true },
        { image: 'b', isTagKnown: false },
      ],
    })
  })

  it.each([
    ['those of the profile', 'own: 1\n', 'own: 1\n'],
    ['those of the folder where the profile has none', ' \n', 'folder: 1\n'],
  ])('the details show as values %s', (_case, own, shown) => {
    const definition = definitionOf(
      [profileOf([profilePack('a', own)])],
      [packOf('a', { values: 'folder: 1\n' })],
    )
    expect(first(definition).packs[0]?.values).toBe(shown)
  })

  it('the details match their schema, also if an export has null and unknown fields', () => {
    const options = [{ value: 'x', label: null, extra: 1 }] as unknown as Variable['options'] & {}
    const variable: Variable = { name: 'v', inputType: 'dropdown', options }
    const found = first(definitionOf([profileOf([profilePack('a')], [variable])]))
    expect([...Compile(ClusterProfileDetail).Errors(found)]).toEqual([])
    expect(found.variables[0]?.options).toEqual([{ value: 'x' }])
  })
})

describe('a variable in the details', () => {
  const shown = (variable: Variable) => first(definitionOf([profileOf([], [variable])])).variables[0]
  const options: Variable['options'] & {} = [
    { value: 'small', label: 'Small', description: 'A small one', default: true },
    { value: 'l' },
  ]
  const full: Variable = {
    ...{ name: 'size', displayName: 'Size', description: 'Of it', format: 'string' },
    inputType: 'dropdown',
    ...{ regex: '^.+$', required: true, hidden: false, immutable: false, isSensitive: false },
    defaultValue: 'small',
    options,
  }

  it('a variable in the details has every field that is set, and no other', () => {
    expect(shown(full)).toEqual({ ...full, value: 'small' })
    expect(shown({ name: 'size' })).toEqual({ name: 'size' })
  })

  it('a sensitive variable shows neither its default and options nor labels that repeat them', () => {
    const sensitive = shown({
      ...full,
      isSensitive: true,
      options: [...options, { value: 'x9', label: 'Code x9' }],
    })
    expect(sensitive).toEqual({
      ...full,
      isSensitive: true,
      defaultValue: masked,
      value: masked,
      options: [
        { value: masked, label: 'Small', description: masked, default: true },
        { value: masked },
        { value: masked, label: masked },
      ],
    })
  })

  it('the details have dependencies and presets of packs, with secrets masked', () => {
    const preset = { name: 'p', displayName: 'P', group: 'g', remove: ['a.b'], add: 'pw: hunter2\n' }
    const dependency = { packName: 'b', layer: '', minVersion: '1.0', maxVersion: '', type: 'upgrade' }
    const secret = { name: 'v', isSensitive: true, defaultValue: 'hunter2' }
    const definition = definitionOf(
      [profileOf([profilePack('a')], [secret])],
      [packOf('a', { dependencies: [dependency], presets: [preset] })],
    )
    const [profile] = detailsOf(definition, { images: () => ({ images: [], guessed: [] }), logo: () => '' })
    expect(profile?.packs).toMatchObject([
      { dependencies: [dependency], presets: [{ ...preset, add: `pw: ${masked}\n` }] },
    ])
  })

  it('a variable whose default the export masked has no default in the details', () => {
    const variable = { name: 'v', isSensitive: true, defaultValue: '******' }
    const details = detailsOf(definitionOf([profileOf([], [variable])]), {
      images: () => ({ images: [], guessed: [] }),
      logo: () => '',
    })
    expect(details[0]?.variables).toEqual([{ ...variable, defaultValue: '' }])
  })

  it('a sensitive variable without a default has none in the details', () => {
    expect(shown({ name: 'a', isSensitive: true, defaultValue: '' })?.defaultValue).toBe('')
    expect(shown({ name: 'a', isSensitive: true })).not.toHaveProperty('defaultValue')
  })
})

describe('the secrets of sensitive variables in values of packs', () => {
  const valuesWith = (values: string, ...variables: Variable[]) =>
    first(
      definitionOf([
        profileOf([profilePack('a', values)]),
        profileOf([], variables, { uid: 'u2', name: 'second' }),
      ]),
    ).packs[0]?.values
  const secret = (defaultValue: string): Variable => ({ name: 's', isSensitive: true, defaultValue })

  const key = `-----BEGIN PRIVATE KEY-----\n${'QUJD'.repeat(16)}\n${'REVG'.repeat(9)}\n-----END PRIVATE KEY-----\n`
  const body = ['QUJD'.repeat(16), 'REVG'.repeat(9)]

  it.each([
    ['a default of any profile', 'hunter2', 'a: hunter2 # hunter2\n', `a: ${masked} # ${masked}\n`],
    ['one of four characters', 'h2o4', 'a: "xh2o4x"\n', `a: "x${masked}x"\n`],
    ['what single quotes double', "it's 42", "a: 'it''s 42'\n", `a: '${masked}'\n`],
    ['what double quotes escape', 'say "42"', 'a: "say \\"42\\""\n', `a: "${masked}"\n`],
    ['its base64', 'hunter2', 'a: aHVudGVyMg==\n', `a: ${masked}\n`],
    ['a default with spaces around it', ' hunter2\n', 'a: hunter2\n', `a: ${masked}\n`],
    ['a long default', `${'k'.repeat(500)}!`, `a: ${'k'.repeat(500)}!\n`, `a: ${masked}\n`],
  ])('in values of packs, %s is masked', (_case, value, values, expected) => {
    expect(valuesWith(values, secret(value))).toBe(expected)
  })

  it('lines of a secret key are masked at any indentation', () => {
    const text = `a: |\n${key.replace(/^(?=.)/gm, '    ')}b: 1\n`
    expect(valuesWith(text, secret(key))).toBe(
      `a: |\n    -----BEGIN PRIVATE KEY-----\n    ${masked}\n    ${masked}\n    -----END PRIVATE KEY-----\nb: 1\n`,
    )
    for (const line of body)
      expect(valuesWith(`a: ${JSON.stringify(key)}\n`, secret(key))).not.toContain(line)
  })

  it('a text that only begins like a secret is not masked', () => {
    const text = `a: ${'k'.repeat(100)}\n`
    expect(valuesWith(text, secret(`${'k'.repeat(80)}!`))).toBe(text)
  })

  it('a secret that contains another one is masked as a whole', () => {
    expect(valuesWith('a: abcdefgh\n', secret('abcd'), { ...secret('abcdefgh'), name: 't' })).toBe(
      `a: ${masked}\n`,
    )
  })

  it('an option of a sensitive dropdown is masked too', () => {
    const options = [{ value: 'alpha-7' }, { value: 'beta-8' }]
    expect(valuesWith('a: beta-8\n', { name: 's', isSensitive: true, inputType: 'dropdown', options })).toBe(
      `a: ${masked}\n`,
    )
  })

  it.each([
    ['shorter defaults', secret('abc'), 'a: abc\n'],
    ['defaults that are not sensitive', { name: 's', defaultValue: 'abcdef' }, 'a: abcdef\n'],
    ['masks', secret('****'), 'a: "****"\n'],
  ])('%s are not masked', (_case, variable, text) => {
    expect(valuesWith(text, variable)).toBe(text)
  })

  it('images are masked like values', () => {
    const values = 'pack: { content: { images: [{ image: "hub/hunter2:1" }] } }'
    const profile = profileOf([profilePack('a')], [secret('hunter2')])
    expect(first(definitionOf([profile], [packOf('a', { values })])).packs[0]?.images).toEqual([
      `hub/${masked}:1`,
    ])
  })

  it('values that take too long to search are masked as a whole', () => {
    const variables = Array.from({ length: 2_000 }, (_, index) => ({
      ...secret(`${index}`.padStart(64, 'x')),
      name: `s${index}`,
    }))
    expect(valuesWith('a: 1\n'.repeat(30_000), ...variables)).toBe(masked)
    expect(valuesWith('a: 1\n', ...variables)).toBe('a: 1\n')
  })
})
