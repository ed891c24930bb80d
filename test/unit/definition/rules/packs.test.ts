import { describe, expect, it } from 'vitest'
import type { Definition } from '../../../../src/definition/definition.ts'
import { checkDefinition } from '../../../../src/definition/rules/check.ts'
import {
  definitionOf,
  infrastructurePacks,
  packOf,
  profileOf,
  profilePack,
} from '../../../support/definitions.ts'

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

describe('the packs that a profile means', () => {
  it.each<[string, Definition, string[]]>([
    [
      'a pack twice in a profile under different display names',
      definitionOf(
        [addOn(['a'], ['a', '', { displayName: 'a-2' }], ['a', '', { displayName: 'a-3' }])],
        [packOf('a')],
      ),
      [],
    ],
    [
      'a pack twice in a profile under the same display name',
      definitionOf(
        [addOn(['a', '', { displayName: 'x' }], ['a'], ['a', '', { displayName: 'x' }])],
        [packOf('a')],
      ),
      ['PackTwice u2 template.packs[2]'],
    ],
    [
      'a pack twice over profiles under different display names',
      definitionOf(
        [
          addOn(['a']),
          { ...addOn(['a', '', { displayName: 'x' }]), uid: 'u3', place: 'profiles/u3/profile.json' },
        ],
        [packOf('a')],
      ),
      ['PackTwice u3 template.packs[0]'],
    ],
    [
      'a pack twice in a layer that a cluster has once',
      definitionOf(
        [
          {
            ...infrastructure,
            packs: [...infrastructurePacks, { ...infrastructurePacks[2]!, displayName: 'x' }],
          },
        ],
        infrastructurePacks.map(({ name, tag }) => packOf(name, { version: tag })),
      ),
      ['LayerTwice u1 template.packs[3]', 'PackTwice u1 template.packs[3]'],
    ],
    [
      'a pack without version and two folders of it',
      definitionOf([addOn(['a', '', { tag: '' }])], [packOf('a'), packOf('a', { version: '2.0.0' })]),
      ['PackVersionMissing u2 template.packs[0]', 'PackUnused packs/a-1.0.0', 'PackUnused packs/a-2.0.0'],
    ],
    [
      'a pack with a floating version and two folders that fit',
      definitionOf([addOn(['a', '', { tag: '1.x' }])], [packOf('a'), packOf('a', { version: '1.2.0' })]),
      ['PackVersionMissing u2 template.packs[0]', 'PackUnused packs/a-1.0.0', 'PackUnused packs/a-1.2.0'],
    ],
    [
      'a pack that is only manifests and has no version',
      definitionOf([addOn(['a', '', { type: 'manifest', tag: '' }])], []),
      [],
    ],
    [
      'charts of a registry',
      definitionOf([addOn(['a', '', { type: 'helm' }], ['b', '', { type: 'oci', tag: '' }])], []),
      ['PackElsewhere u2 template.packs[0]', 'PackElsewhere u2 template.packs[1]'],
    ],
    [
      'a chart of a registry and a folder of another version',
      definitionOf([addOn(['a', '', { type: 'helm' }])], [packOf('a', { version: '2.0.0' })]),
      ['PackMissing u2 template.packs[0]', 'PackUnused packs/a-2.0.0'],
    ],
    [
      'a profile of type system beside infrastructure',
      definitionOf([infrastructure, { ...addOn(['a']), type: 'system' }]),
      [],
    ],
  ])('the problems of %s are found', (_name, definition, problems) => {
    expect(check(definition)).toEqual(problems)
  })
})
