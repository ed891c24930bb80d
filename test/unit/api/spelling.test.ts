import { Type } from 'typebox'
import { expect, it } from 'vitest'
import { describeFields } from '../../../src/api/spelling.ts'

const schema = Type.Object({
  metadata: Type.Object({
    name: Type.String(),
    labels: Type.Optional(Type.Record(Type.String(), Type.String())),
  }),
  variables: Type.Optional(
    Type.Array(
      Type.Object({
        name: Type.String(),
        isSensitive: Type.Optional(Type.Boolean()),
        format: Type.Optional(Type.String()),
      }),
    ),
  ),
})

const isField = (parent: string, name: string) => parent === 'variables' && name === 'formats'

it.each([
  [{ metdata: {} }, 'metdata', 'metadata'],
  [{ metadata: { nmae: 'a' } }, 'metadata.nmae', 'name'],
  [{ variables: [{ name: 'a' }, { name: 'b', isSensitiv: true }] }, 'variables[1].isSensitiv', 'isSensitive'],
  [{ variables: [{ name: 'a', foramt: 'number' }] }, 'variables[0].foramt', 'format'],
  // A field of that name of another object says nothing of this one.
  [{ metadata: { name: 'a', label: {} } }, 'metadata.label', 'labels'],
])('a field that is nearly one of the schema is refused with its path: %j', (body, field, meant) => {
  expect(describeFields(body, schema, isField)).toMatchObject({
    message: `${field} is misspelt; write ${meant}`,
    details: { field },
  })
})

it('a field in the wrong place is refused with the place where it belongs', () => {
  expect(describeFields({ metadata: { name: 'a' }, labels: {} }, schema, isField)).toMatchObject({
    message: 'labels belongs in metadata; write metadata.labels',
    details: { field: 'labels' },
  })
  // Of two places neither is meant.
  const two = Type.Object({
    metadata: schema.properties.metadata,
    spec: Type.Object({ name: Type.String() }),
  })
  expect(describeFields({ name: 'a' }, two, isField)).toBeUndefined()
})

it.each([
  [{ metadata: { name: 'a' }, variables: [{ name: 'a', isSensitive: true }] }],
  [{ metadata: { name: 'a', labels: { nmae: 'free' } } }],
  // A client of the published API sends fields that are not here.
  [{ metadata: { name: 'a', ownerReference: 'x' }, tenantScope: true }],
  // A reply has it.
  [{ variables: [{ name: 'a', formats: 'x' }] }],
  // What was meant is there.
  [{ variables: [{ name: 'a', forma: 'x', format: 'y' }] }],
  // One that is given can not be meant.
  [{ metadata: { name: 'a', names: 'b' } }],
  [null],
  ['text'],
  [[{ metdata: {} }]],
])('others pass: %j', (body) => {
  expect(describeFields(body, schema, isField)).toBeUndefined()
})
