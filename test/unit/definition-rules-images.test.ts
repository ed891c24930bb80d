import { describe, expect, it } from 'vitest'
import type { Pack } from '../../src/cluster/definition.ts'
import { definitionOf, imagesIn, packOf } from '../support/definitions.ts'

describe('the images of a pack', () => {
  const images = (values: string | undefined, ...manifests: string[]) => {
    const pack = packOf('a', {
      values,
      manifests: manifests.map((content, index) => ({ place: `m${index}`, content })),
    } satisfies Partial<Pack>)
    return imagesIn(definitionOf([], [pack]))(pack)
  }

  it.each<[string, string | undefined, string[], string[]]>([
    ['are none where there is nothing', undefined, [], []],
    [
      'stand in its values',
      'pack:\n  content:\n    images:\n      - image: b:1\n      - image: a:1\n      - image: b:1\n',
      [],
      ['a:1', 'b:1'],
    ],
    [
      'are left as they are written',
      'pack: { content: { images: [{ image: "Docker.IO/A:{{ .spectro.var.x }}" }] } }',
      [],
      ['Docker.IO/A:{{ .spectro.var.x }}'],
    ],
    [
      'stand nowhere else in values',
      'image: a\ncharts: { x: { image: b, containers: [{ image: c }] } }',
      [],
      [],
    ],
    [
      'stand in all containers of a pod',
      undefined,
      [
        'spec:\n  containers: [{ image: c }]\n  initContainers: [{ image: i }]\n  ephemeralContainers: [{ image: e }]\n',
      ],
      ['c', 'e', 'i'],
    ],
    [
      'stand in any workload and list',
      undefined,
      [
        'items:\n- spec: { jobTemplate: { spec: { template: { spec: { containers: [{ name: x, image: a }] } } } } }',
      ],
      ['a'],
    ],
    [
      'stand in any document',
      undefined,
      ['a: 1\n---\nspec: { containers: [{ image: a }] }\n---\nspec:\n  containers:\n  - image: b\n'],
      ['a', 'b'],
    ],
    ['stand in JSON', undefined, ['{"spec":{"containers":[{"image":"a"}]}}'], ['a']],
    [
      'with macros and more are left alone',
      undefined,
      ['spec:\n  containers:\n  - image: a:{{.spectro.var.x}}{{ .spectro.var.y }}-b\n'],
      ['a:{{.spectro.var.x}}{{ .spectro.var.y }}-b'],
    ],
    [
      'are no properties of a schema',
      undefined,
      ['properties:\n  containers: { items: { properties: { image: { type: string } } } }'],
      [],
    ],
    [
      'are texts',
      undefined,
      ['spec: { containers: [{ image: 1 }, { image: }, { image: "" }, x, { image: [a] }] }'],
      [],
    ],
    [
      'are those of the texts that can be read',
      undefined,
      ['spec: { containers: [{ image: a }', 'spec: { containers: [{ image: b }] }'],
      ['b'],
    ],
    ['are not those of text in a block', undefined, ['data:\n  x: |\n    containers:\n    - image: a\n'], []],
  ])('%s', (_name, values, manifests, expected) => {
    expect(images(values, ...manifests)).toEqual(expected)
  })
})
