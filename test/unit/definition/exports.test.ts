import { describe, expect, it } from 'vitest'
import type { Pack } from '../../../src/definition/definition.ts'
import { parseYaml } from '../../../src/definition/format/parse.ts'
import { deriveUid, parseProfile, resolvePacks } from '../../../src/definition/read/read-profile.ts'
import { packOf } from '../../support/definitions.ts'
import { exportedProfile } from '../../support/tar-bytes.ts'

const read = (profile: object, uid?: string) =>
  parseProfile({ place: 'p.json', content: JSON.stringify(profile) }, { uid })
const withoutUid = (name: string, uid?: string | null) => {
  const { metadata, spec } = exportedProfile('u1', { type: 'add-on' })
  return { metadata: { ...metadata, name, uid }, spec }
}

describe('the uid of a profile', () => {
  it('the uid of an export without one is derived from its name, the same in every version of this program', () => {
    const uids = [undefined, null, ''].map((uid) => read(withoutUid('shop', uid)).profile?.uid)
    expect(uids).toEqual(Array(3).fill('040c6ad989def1827f226955'))
    expect(deriveUid('shop 2')).toMatch(/^[0-9a-f]{24}$/)
    expect(deriveUid('shop 2')).not.toBe(deriveUid('shop'))
  })

  it('the uid of the export comes before that of its folder and the derived one', () => {
    expect(read(withoutUid('shop', 'u7'), 'folder').profile?.uid).toBe('u7')
    expect(read(withoutUid('shop'), 'folder').profile?.uid).toBe('folder')
    expect(read(withoutUid('shop', '../u7')).problems).toMatchObject([
      { code: 'FieldInvalid', place: 'p.json#metadata.uid' },
    ])
  })
})

describe('an exported profile', () => {
  it('an exported profile may be of type system', () => {
    const { profile, problems } = read(exportedProfile('u1', { type: 'system' }))
    expect(problems).toEqual([])
    expect(profile?.type).toBe('system')
  })

  it('the tags of an exported profile come from its labels', () => {
    const tagsOf = (more: object) => {
      const { metadata, spec } = exportedProfile('u1', { type: 'add-on' })
      return read({ metadata: { ...metadata, ...more }, spec }).profile?.tags
    }
    const labels = { shop: 'spectro__tag', line: '3', none: '', other: null }
    expect(tagsOf({ labels })).toEqual(['shop', 'line:3', 'none'])
    expect(tagsOf({ labels, tags: ['own'] })).toEqual(['own'])
    expect(tagsOf({ labels: null })).toEqual([])
  })

  it('an exported profile may omit tags of packs, and names and contents of manifests', () => {
    const packs = [{ name: 'a', type: 'manifest', manifests: [{ name: 'm' }, { content: 'kind: A' }] }]
    const { profile, problems } = read(exportedProfile('u1', { type: 'add-on', packs }))
    expect(problems).toEqual([])
    expect(profile?.packs).toMatchObject([
      {
        tag: '',
        manifests: [
          { name: 'm', content: '' },
          { name: '', content: 'kind: A' },
        ],
      },
    ])
  })
})

describe('an export in YAML', () => {
  it('an export in YAML is read like JSON, with aliases and merged keys', () => {
    const yaml =
      'base: &base\n  version: 1.0.0\nspec:\n  <<: *base\n  values: |\n    a: {{ .spectro.var.x }}\n  flag: true\n'
    expect(parseYaml('p.yaml', yaml)).toEqual({
      problems: [],
      value: {
        base: { version: '1.0.0' },
        spec: { version: '1.0.0', values: 'a: {{ .spectro.var.x }}\n', flag: true },
      },
    })
  })

  it.each([
    ['is not YAML', 'a: [1\nb: 2\n', 'p.yaml:2:1', 'is not valid YAML'],
    ['has a key twice', 'a: 1\na: 2\n', 'p.yaml:2:1', 'is not valid YAML'],
    ['is two documents', 'a: 1\n---\nb: 2\n', 'p.yaml:2:1', 'begins a second document'],
    ['is empty', '', 'p.yaml', 'is empty'],
    [
      'contains itself',
      'a: 1\nb: &b { c: [*b] }\n',
      'p.yaml:2:13',
      'is an alias inside the node that it refers to',
    ],
    ['contains __proto__', 'a:\n  __proto__: { b: 1 }\n', 'p.yaml#a.__proto__', 'is the key __proto__'],
    [
      'multiplies itself by aliases',
      `a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n${Array.from({ length: 6 }, (_, at) => `a${at + 1}: &a${at + 1} [${`*a${at},`.repeat(10)}]\n`).join('')}`,
      'p.yaml:7:22',
      'expands to more than',
    ],
  ])('an export in YAML that %s is a problem with its place', (_name, text, place, message) => {
    const { value, problems } = parseYaml('p.yaml', text)
    expect(value).toBeUndefined()
    expect(problems).toMatchObject([{ severity: 'error', place }])
    expect(problems[0]?.message).toContain(message)
  })

  it('a field of the wrong type in YAML is named', () => {
    const text = {
      place: 'p.yaml',
      content:
        'metadata: { name: a }\nspec: { template: { type: infra, packs: [{ name: a, tag: 1.10 }] } }\n',
    }
    expect(parseProfile(text, { parse: parseYaml }).problems).toMatchObject([
      {
        code: 'FieldInvalid',
        place: 'p.yaml#spec.template.packs[0].tag',
        message: 'is 1.1; it must be a text',
      },
    ])
  })
})

describe('the version of a pack', () => {
  const versionOf = (pack: object, ...present: string[]) => {
    const profile = read(exportedProfile('u1', { type: 'add-on', packs: [{ name: 'a', ...pack }] })).profile
    const packs = [packOf('b', { version: '9' }), ...present.map((version) => packOf('a', { version }))]
    return resolvePacks(profile ? [profile] : [], packs)[0]?.packs[0]?.tag
  }

  it.each<[string, object, string[], string]>([
    ['is its tag', { tag: '1.0' }, ['1.0', '1.1'], '1.0'],
    ['is its tag also where no folder has it', { tag: '1.0', version: '1.1' }, ['1.1'], '1.0'],
    ['without a tag is the version in the export', { version: '1.0' }, ['1.0', '1.1'], '1.0'],
    ['without a tag is the version in the export, also without a folder', { version: '1.0' }, [], '1.0'],
    ['without tag and version is that of the only folder', {}, ['1.1'], '1.1'],
    ['without tag and version is unknown if there are several folders', {}, ['1.0', '1.1'], ''],
    ['without tag, version and folder is unknown', { tag: null }, [], ''],
    [
      'with a floating tag is the version beside it',
      { tag: '1.25.x', version: '1.25.2' },
      ['1.25.2', '1.25.3'],
      '1.25.2',
    ],
    [
      'with a floating tag is that of the only folder that fits',
      { tag: '1.25.x' },
      ['1.25.2', '1.251.0', '1.2.5'],
      '1.25.2',
    ],
    ['with a floating tag is unknown if two folders fit', { tag: '1.25.x' }, ['1.25.2', '1.25.3'], '1.25.x'],
    ['may itself end in .x', { tag: '1.25.x', version: '1.25.2' }, ['1.25.x', '1.25.2'], '1.25.x'],
  ])('the version of a pack %s', (_name, pack, present, expected) => {
    expect(versionOf(pack, ...present)).toBe(expected)
  })
})

describe('the display name of a pack', () => {
  const displayName = (pack: object, folder: Partial<Pack> = {}) => {
    const packs = [{ name: 'a', tag: '1.0.0', ...pack }]
    const profile = read(exportedProfile('u1', { type: 'add-on', packs })).profile
    return resolvePacks(profile ? [profile] : [], [packOf('a', folder)])[0]?.packs[0]?.displayName
  }
  const key = 'spectrocloud.com/display-name'

  it.each<[string, object, Partial<Pack>, string]>([
    ['is empty if it is not set', { values: 'a: 1\n' }, {}, ''],
    ['may be set below pack in its values', { values: `pack:\n  ${key}: a-1\n` }, {}, 'a-1'],
    ['may be set at the top of its values', { values: `pack:\n${key}: "a-1"\n` }, {}, 'a-1'],
    [
      'is that of the folder if the profile gives no values',
      {},
      { values: `pack: { ${key}: a-1 }\n` },
      'a-1',
    ],
    [
      'is not that of the folder if the profile gives values',
      { values: 'a: 1\n' },
      { values: `pack: { ${key}: a-1 }\n` },
      '',
    ],
    [
      'in its annotations comes first',
      { annotations: { [key]: 'a-2' }, values: `pack: { ${key}: a-1 }\n` },
      {},
      'a-2',
    ],
    [
      'keeps its macros',
      { values: `pack:\n  ${key}: "a-{{ .spectro.var.x }}"\n` },
      {},
      'a-{{ .spectro.var.x }}',
    ],
    ['is not read from a comment', { values: `pack:\n  # ${key}: a-1\n  b: 1\n` }, {}, ''],
  ])('the display name of a pack %s', (_name, pack, folder, expected) => {
    expect(displayName(pack, folder)).toBe(expected)
  })
})
