import { describe, expect, it } from 'vitest'
import { apiVersionsIn, imagesIn, readObjects } from '../../../../src/cluster/prepare/manifests.ts'
import { parseExactJson } from '../../../../src/base/json.ts'
import { readPlain } from '../../../../src/definition/rules/plain-values.ts'

describe('objects to be applied', () => {
  it('are the documents of a text, and the items of its lists', () => {
    const text =
      'apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: a}}\n- apiVersion: v1\n  kind: ConfigMapList\n  items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}]\n---\n{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c"}}\n'
    const { objects, problems } = readObjects(text)
    expect(problems).toEqual([])
    expect(objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      ...['Secret a', 'ConfigMap b', 'Namespace c'],
    ])
  })

  it('are none of a list that a template left without items', () => {
    const text = 'apiVersion: v1\nkind: List\nitems:\n---\napiVersion: v1\nkind: List\n'
    expect(readObjects(text)).toEqual({ objects: [], problems: [] })
  })

  it.each([
    ['just a text', 'has object 1, which is not a mapping'],
    ['kind: Secret\nmetadata: {name: a}', 'has object 1 without apiVersion'],
    ['apiVersion: v1\nkind: 1\nmetadata: {name: a}', 'has object 1 without kind'],
    ['apiVersion: v1\nkind: Secret', 'has object 1, a Secret, without metadata.name'],
    [
      'apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}',
      'has object 1, a Pod, with generateName; it cannot be applied again, so give it a name',
    ],
  ])('%j cannot be applied', (text, problem) => {
    expect(readObjects(text)).toEqual({ objects: [], problems: [problem] })
  })
})

describe('images of objects', () => {
  it('are those of all kinds of containers at any depth, and of image volumes; each once', () => {
    const objects = readPlain(
      'spec:\n  template:\n    spec:\n      initContainers: [{image: b}]\n      containers: [{image: " a "}, {name: x}, {image: b}]\n      volumes: [{image: {reference: c}}, {name: d}]\n  containers: {image: no}\nimage: no\n---\nitems: [[{ephemeralContainers: [{image: d}]}]]\n',
    ).documents
    expect(imagesIn(objects)).toEqual(['a', 'b', 'c', 'd'])
  })
})

describe('custom resource definitions', () => {
  it('add versions and kinds to the API', () => {
    const objects = readPlain(
      'kind: CustomResourceDefinition\nspec:\n  group: shop.example\n  names: {kind: Till}\n  versions: [{name: v1}, {name: v1beta1}]\n---\nkind: Secret\nspec: {group: x, names: {kind: y}, versions: [{name: v1}]}\n',
    ).documents
    expect(apiVersionsIn(objects)).toEqual([
      ...['shop.example/v1', 'shop.example/v1/Till', 'shop.example/v1beta1', 'shop.example/v1beta1/Till'],
    ])
  })
})

it('whole numbers of 64 bits have their digits in what is applied, and are read back so', () => {
  const quota =
    'apiVersion: plant.example/v1\nkind: Quota\nmetadata: {name: big}\nspec: {maxBytes: 9223372036854775807, seen: -9007199254740993, hex: 0x7fffffffffffffff, most: 1_8446744073709551615, small: 1}\n'
  const line = JSON.stringify(readObjects(quota).objects[0])
  expect(line).toContain(
    '"spec":{"maxBytes":9223372036854775807,"seen":-9007199254740993,"hex":9223372036854775807,"most":18446744073709551615,"small":1}',
  )
  expect(JSON.stringify(parseExactJson(line))).toBe(line)
})

it.each([
  ['a: .inf', 'line 1:4: is .inf, for which JSON has no value'],
  ['a: [-.INF]', 'is -.INF'],
  ['a: .nan', 'is .nan'],
  ['a: !!binary gICA', 'has the tag !!binary'],
  ['a: !!binary aGFsbG8', 'has the tag !!binary'],
  ['a: !!set {x}', 'has the tag !!set'],
  ['a: !!timestamp 2020-01-01', 'has the tag !!timestamp'],
  ['a:\n  !!omap [x: 1]', 'has the tag !!omap'],
])('%j is refused with its place, since JSON has no value for it', (text, message) => {
  expect(readPlain(text).problems[0]?.replace('line 1 4', 'line 1:4')).toContain(message)
})
