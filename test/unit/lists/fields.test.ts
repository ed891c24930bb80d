import { Type } from 'typebox'
import { describe, expect, it } from 'vitest'
import { namesPath, parseFields, pruneItem } from '../../../src/lists/fields.ts'

const Item = Type.Object({
  metadata: Type.Object({
    uid: Type.String(),
    name: Type.String(),
    labels: Type.Record(Type.String(), Type.String()),
  }),
  spec: Type.Object({
    disks: Type.Array(
      Type.Object({ size: Type.Number(), parts: Type.Array(Type.Object({ at: Type.String() })) }),
    ),
    either: Type.Union([Type.Object({ one: Type.Number() }), Type.Null()]),
  }),
})

const item = {
  metadata: { uid: 'u', name: 'n', labels: { site: 'north', 'a/b': 'c' } },
  spec: {
    disks: [
      { size: 1, parts: [{ at: '/' }, { at: '/var' }] },
      { size: 2, parts: [] },
    ],
    either: null,
  },
}

const prune = (fields: string) => pruneItem(item, parseFields(fields, Item))

describe('fields', () => {
  it.each([
    ['one path', 'metadata.uid', { metadata: { uid: 'u' } }],
    ['two of an object', 'metadata.uid,metadata.name', { metadata: { uid: 'u', name: 'n' } }],
    ['an object', 'metadata', { metadata: item.metadata }],
    ['an object and a part of it', 'metadata.uid,metadata', { metadata: item.metadata }],
    ['a part of each element', 'spec.disks.size', { spec: { disks: [{ size: 1 }, { size: 2 }] } }],
    [
      'a part of elements of elements',
      'spec.disks.parts.at',
      { spec: { disks: [{ parts: [{ at: '/' }, { at: '/var' }] }, { parts: [] }] } },
    ],
    ['a label', 'metadata.labels.site', { metadata: { labels: { site: 'north' } } }],
    ['a label that this item has not', 'metadata.labels.zone', { metadata: { labels: {} } }],
    ['a part of what is null here', 'spec.either.one', { spec: { either: null } }],
  ])('fields keep %s', (_what, fields, expected) => {
    expect(prune(fields)).toEqual(expected)
  })

  it.each([
    ['metadata.colour'],
    ['metadata.uid.x'],
    ['__proto__'],
    ['metadata.__proto__'],
    ['constructor.prototype'],
    ['spec.disks.0'],
    ['metadata..uid'],
    ['.'],
  ])('fields refuse %s and name it', (path) => {
    expect(() => prune(`metadata.uid,${path}`)).toThrow(
      expect.objectContaining({
        code: 'BadRequest',
        message: expect.stringContaining(path),
        details: { field: 'fields', unknown: [path] },
      }),
    )
  })

  it('fields accept any path where the resource declares no schema, and find nothing in prototypes', () => {
    const tree = parseFields('metadata.uid,nothing.here,__proto__.toString,constructor')
    expect(pruneItem(item, tree)).toEqual({ metadata: { uid: 'u' } })
  })

  it('fields refuse a path of a thousand names', () => {
    expect(() => parseFields('a.'.repeat(1_000) + 'a')).toThrow(
      expect.objectContaining({ code: 'BadRequest' }),
    )
  })

  it('fields leave the item unchanged', () => {
    const before = structuredClone(item)
    prune('metadata.uid')
    expect(item).toEqual(before)
  })
})

it.each([
  ['spec', true],
  ['spec.device', true],
  ['spec.device.disks', true],
  ['spec.device.disks.size', true],
  ['metadata,spec.device.disks', true],
  ['metadata', false],
  ['spec.device.disk', false],
  ['spec.device.nics,spec.host', false],
])('the fields %s name the path spec.device.disks: %s', (fields, isNamed) => {
  expect(namesPath(parseFields(fields), ['spec', 'device', 'disks'])).toBe(isNamed)
})
