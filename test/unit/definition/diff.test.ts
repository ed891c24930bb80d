import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import type { Profile, Variable } from '../../../src/definition/definition.ts'
import { DefinitionDiff } from '../../../src/definition/schemas.ts'
import { detailsOf } from '../../../src/definition/slots/details.ts'
import { diffDefinitions } from '../../../src/definition/slots/slots.ts'
import { definitionOf, imagesIn, packOf, profileOf, profilePack } from '../../support/definitions.ts'

const details = (profiles: readonly Profile[]) =>
  detailsOf(definitionOf(profiles), { images: () => ({ images: [], guessed: [] }), logo: () => '' })

function diff(running: readonly Profile[], incoming: readonly Profile[]) {
  const found = diffDefinitions(details(running), details(incoming))
  expect([...Compile(DefinitionDiff).Errors(found)]).toEqual([])
  return found.profiles
}

describe('the difference of two definitions', () => {
  const variable: Variable = { name: 'v', required: true, defaultValue: '1' }
  const base = profileOf([profilePack('a', 'x: 1\n')], [variable])
  const other = profileOf([profilePack('b')], [], { uid: 'u2', name: 'second', version: '3.0.0' })

  it('the difference of equal definitions is empty', () => {
    expect(diff([base, other], [other, base])).toEqual([])
  })

  it('the difference ignores descriptions, tags and logos', () => {
    expect(diff([base], [{ ...base, description: 'New words', tags: ['new'] }])).toEqual([])
  })

  it('the difference lists the packs and variables of an added profile', () => {
    expect(diff([other], [base, other])).toEqual([
      {
        ...{ profileUid: 'u1', profileName: 'first', change: 'added', toVersion: '1.0.0', fields: [] },
        packs: [{ name: 'a', change: 'added', toVersion: '1.0.0', valuesChanged: false, fields: [] }],
        variables: [{ name: 'v', change: 'added', required: true, hasDefault: true, fields: [] }],
      },
    ])
  })

  it('the difference lists the packs and variables of a removed profile', () => {
    expect(diff([base, other], [other])).toEqual([
      {
        ...{ profileUid: 'u1', profileName: 'first', change: 'removed', fromVersion: '1.0.0', fields: [] },
        packs: [{ name: 'a', change: 'removed', fromVersion: '1.0.0', valuesChanged: false, fields: [] }],
        variables: [{ name: 'v', change: 'removed', fields: [] }],
      },
    ])
  })

  it('the difference has the order of the incoming definition, with removed profiles last', () => {
    const [x, y, z] = ['x', 'y', 'z'].map((uid) => profileOf([], [], { uid, name: uid }))
    const newer = { ...z!, version: '2.0.0' }
    expect(diff([x!, z!], [newer, y!]).map(({ profileUid, change }) => `${profileUid} ${change}`)).toEqual([
      'z changed',
      'y added',
      'x removed',
    ])
  })

  it.each<[string, Partial<Profile>, object]>([
    ['a new version', { version: '1.1.0' }, { toVersion: '1.1.0', fields: [] }],
    ['a new name', { name: 'renamed' }, { profileName: 'renamed', fields: ['profileName'] }],
    ['another type', { type: 'infra' }, { fields: ['profileType'] }],
    ['another uid of the same name', { uid: 'u9' }, { profileUid: 'u9', fields: ['profileUid'] }],
  ])('the difference of a profile shows %s', (_case, rest, expected) => {
    expect(diff([base], [{ ...base, ...rest }])).toEqual([
      {
        ...{ profileUid: 'u1', profileName: 'first', change: 'changed' },
        ...{ fromVersion: '1.0.0', toVersion: '1.0.0', packs: [], variables: [] },
        ...expected,
      },
    ])
  })

  it('a profile is matched by uid before it is matched by name', () => {
    const renamed = profileOf([], [], { uid: 'u1', name: 'second', version: '2.0.0' })
    const named = profileOf([], [], { uid: 'u5', name: 'first' })
    const running = [profileOf([], [], { uid: 'u1', name: 'first' })]
    expect(diff(running, [named, renamed])).toMatchObject([
      { profileUid: 'u5', change: 'added' },
      { profileUid: 'u1', change: 'changed', fields: ['profileName'] },
    ])
  })

  it('each running profile is matched once, also if two have the same name', () => {
    const twice = ['u8', 'u9'].map((uid) => profileOf([], [], { uid }))
    expect(diff([profileOf([])], twice).map(({ change }) => change)).toEqual(['changed', 'added'])
  })
})

describe('packs in the difference', () => {
  const packs = (running: Profile['packs'], incoming: Profile['packs']) =>
    diff([profileOf(running)], [profileOf(incoming)])[0]?.packs
  const same = { name: 'a', change: 'changed', fromVersion: '1.0.0', toVersion: '1.0.0' }

  it('packs that are added, removed or of another version are in the difference', () => {
    const running = [profilePack('a'), profilePack('b'), profilePack('c')]
    const incoming = [profilePack('c'), profilePack('a', '', { tag: '1.1.0' }), profilePack('d')]
    expect(packs(running, incoming)).toEqual([
      { ...same, toVersion: '1.1.0', valuesChanged: false, fields: [] },
      { name: 'd', change: 'added', toVersion: '1.0.0', valuesChanged: false, fields: [] },
      { name: 'b', change: 'removed', fromVersion: '1.0.0', valuesChanged: false, fields: [] },
    ])
  })

  it('a pack whose values changed is in the difference', () => {
    expect(packs([profilePack('a', 'x: 1\n')], [profilePack('a', 'x: 2\n')])).toEqual([
      { ...same, valuesChanged: true, fields: [] },
    ])
  })

  it('packs are matched by name and display name', () => {
    const named = (displayName: string, values: string) => profilePack('a', values, { displayName })
    const running = [profilePack('a', 'x: 1\n'), named('a-2', 'x: 2\n'), named('a-3', 'x: 3\n')]
    const incoming = [named('a-2', 'x: 4\n'), profilePack('a', 'x: 1\n'), named('a-4', 'x: 3\n')]
    expect(packs(running, incoming)).toEqual([
      { ...same, displayName: 'a-2', valuesChanged: true, fields: [] },
      {
        name: 'a',
        displayName: 'a-4',
        change: 'added',
        toVersion: '1.0.0',
        valuesChanged: false,
        fields: [],
      },
      {
        name: 'a',
        displayName: 'a-3',
        change: 'removed',
        fromVersion: '1.0.0',
        valuesChanged: false,
        fields: [],
      },
    ])
  })

  it('packs are equal to those that an older version stored without guessed images', () => {
    const now = details([profileOf([profilePack('a')])])
    const older = now.map((profile) => ({
      ...profile,
      packs: profile.packs.map(({ guessedImages, ...pack }) => (expect(guessedImages).toEqual([]), pack)),
    }))
    expect(diffDefinitions(older, now).profiles).toEqual([])
  })

  it('a pack whose layer or images changed is in the difference', () => {
    const withImage = (image: string, layer: string) => {
      const pack = packOf('a', { manifests: [{ place: 'm', content: `containers: [{ image: ${image} }]` }] })
      const definition = definitionOf([profileOf([profilePack('a', '', { layer })])], [pack])
      return detailsOf(definition, { images: imagesIn(definition), logo: () => '' })
    }
    expect(diffDefinitions(withImage('x', 'csi'), withImage('y', 'addon')).profiles[0]?.packs).toEqual([
      { ...same, valuesChanged: false, fields: ['layer', 'images'] },
    ])
  })
})

describe('variables in the difference', () => {
  const variables = (running: readonly Variable[], incoming: readonly Variable[]) =>
    diff([profileOf([], running)], [profileOf([], incoming)])[0]?.variables ?? []

  it.each<[string, Omit<Variable, 'name'>, boolean, boolean]>([
    ['needs nothing', {}, false, false],
    ['needs a value', { required: true, defaultValue: '' }, true, false],
    ['has a default', { required: true, defaultValue: '1' }, true, true],
    ['has a secret default', { required: true, defaultValue: 'hunter2', isSensitive: true }, true, true],
    [
      'has a default option',
      { inputType: 'dropdown', options: [{ value: 'x', default: true }] },
      false,
      true,
    ],
    ['has no default option', { inputType: 'dropdown', options: [{ value: 'x' }] }, false, false],
  ])('an added variable %s in the difference', (_case, rest, required, hasDefault) => {
    expect(variables([], [{ name: 'v', ...rest }])).toEqual([
      { name: 'v', change: 'added', required, hasDefault, fields: [] },
    ])
  })

  it('a removed variable is in the difference', () => {
    expect(variables([{ name: 'v', required: true }], [])).toEqual([
      { name: 'v', change: 'removed', fields: [] },
    ])
  })

  const dropdown: Variable = { name: 'v', inputType: 'dropdown', options: [{ value: 'x' }, { value: 'y' }] }
  it.each<[string, Variable, Partial<Variable>]>([
    ['displayName', { name: 'v' }, { displayName: 'V' }],
    ['description', { name: 'v', description: 'x' }, { description: '' }],
    ['format', { name: 'v', format: 'string' }, { format: 'ipv4' }],
    ['inputType', { name: 'v' }, { inputType: 'multiline' }],
    ['regex', { name: 'v', regex: 'a' }, { regex: 'b' }],
    ['required', { name: 'v' }, { required: true }],
    ['hidden', { name: 'v', hidden: true }, { hidden: false }],
    ['immutable', { name: 'v' }, { immutable: true }],
    ['isSensitive', { name: 'v' }, { isSensitive: true }],
    ['defaultValue', { name: 'v', defaultValue: '1' }, { defaultValue: '2' }],
    ['options', dropdown, { options: [{ value: 'x' }] }],
    ['options', dropdown, { options: [{ value: 'y' }, { value: 'x' }] }],
    ['options', dropdown, { options: [{ value: 'x', default: true }, { value: 'y' }] }],
  ])('a variable whose %s changed is in the difference', (field, before, rest) => {
    expect(variables([before], [{ ...before, ...rest }])).toMatchObject([
      { name: 'v', change: 'changed', fields: [field] },
    ])
  })

  it('empty, false and absent fields of variables are equal', () => {
    const empty: Variable = { name: 'v', defaultValue: '', required: false, options: [], description: '' }
    expect(variables([{ name: 'v' }], [empty])).toEqual([])
  })

  it('options that are written differently but mean the same are equal', () => {
    const one: Variable = { ...dropdown, options: [{ value: 'x', label: 'X', default: false }] }
    const two: Variable = { ...dropdown, options: [{ description: '', label: 'X', value: 'x' }] }
    expect(variables([one], [two])).toEqual([])
  })

  it('a changed secret is not in the difference', () => {
    const secret = (defaultValue: string): Variable => ({ name: 'v', isSensitive: true, defaultValue })
    expect(variables([secret('hunter2')], [secret('hunter3')])).toEqual([])
    const found = variables([secret('hunter2')], [{ ...secret('hunter3'), required: true }])
    expect(found).toMatchObject([{ fields: ['required'] }])
    expect(JSON.stringify(found)).not.toContain('hunter')
  })
})
