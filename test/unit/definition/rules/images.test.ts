import { describe, expect, it } from 'vitest'
import type { Pack, ProfilePack } from '../../../../src/definition/definition.ts'
import { cpuNow } from '../../../support/cpu-time.ts'
import { definitionOf, imagesIn, packOf, profileOf, profilePack } from '../../../support/definitions.ts'

describe('the images of a pack', () => {
  const images = (values: string | undefined, ...manifests: string[]) => {
    const pack = packOf('a', {
      values,
      manifests: manifests.map((content, index) => ({ place: `m${index}`, content })),
    } satisfies Partial<Pack>)
    const profile = profileOf([profilePack('a')])
    return imagesIn(definitionOf([profile], [pack]))(profile, 0, pack).images
  }

  it.each<[string, string | undefined, string[], string[]]>([
    ['are empty without values and manifests', undefined, [], []],
    [
      'are those that its values list',
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
      'are not taken from elsewhere in values',
      'image: a\ncharts: { x: { image: b, containers: [{ image: c }] } }',
      [],
      [],
    ],
    [
      'are those of all containers of a pod',
      undefined,
      [
        'spec:\n  containers: [{ image: c }]\n  initContainers: [{ image: i }]\n  ephemeralContainers: [{ image: e }]\n',
      ],
      ['c', 'e', 'i'],
    ],
    [
      'are found in any workload and list',
      undefined,
      [
        'items:\n- spec: { jobTemplate: { spec: { template: { spec: { containers: [{ name: x, image: a }] } } } } }',
      ],
      ['a'],
    ],
    [
      'are found in any document',
      undefined,
      ['a: 1\n---\nspec: { containers: [{ image: a }] }\n---\nspec:\n  containers:\n  - image: b\n'],
      ['a', 'b'],
    ],
    ['are found in JSON', undefined, ['{"spec":{"containers":[{"image":"a"}]}}'], ['a']],
    [
      'keep their macros',
      undefined,
      ['spec:\n  containers:\n  - image: a:{{.spectro.var.x}}{{ .spectro.var.y }}-b\n'],
      ['a:{{.spectro.var.x}}{{ .spectro.var.y }}-b'],
    ],
    [
      'are not the properties of a schema',
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
      'are those of the texts that can be parsed',
      undefined,
      ['spec: { containers: [{ image: a }', 'spec: { containers: [{ image: b }] }'],
      ['b'],
    ],
    ['are not those of text in a block', undefined, ['data:\n  x: |\n    containers:\n    - image: a\n'], []],
  ])('the images of a pack %s', (_name, values, manifests, expected) => {
    expect(images(values, ...manifests)).toEqual(expected)
  })
})

describe('the images of a pack of a profile', () => {
  const found = (own: Partial<ProfilePack>, folder?: Partial<Pack>) => {
    const profile = profileOf([profilePack('a', own.values, own)])
    const packs = folder ? [packOf('a', folder)] : []
    return imagesIn(definitionOf([profile], packs))(profile, 0, packs[0])
  }
  const listed = (...images: string[]) =>
    `pack: { content: { images: [${images.map((image) => `{ image: "${image}" }`).join(', ')}] } }\n`
  const pod = (image: string) => `spec: { containers: [{ image: "${image}" }] }\n`

  it('the images of a pack are those of the values of the profile if it gives some', () => {
    expect(found({ values: listed('own:1') }, { values: listed('folder:1') }).images).toEqual(['own:1'])
    expect(found({ values: ' \n' }, { values: listed('folder:1') }).images).toEqual(['folder:1'])
    expect(found({ values: 'a: 1\n' }, { values: listed('folder:1') }).images).toEqual([])
  })

  it('the images of a pack are those of all manifests, of the folder and of the profile', () => {
    const manifests = [{ name: 'm', content: pod('own:2') }]
    const folder = { manifests: [{ place: 'm', content: pod('folder:2') }], values: listed('listed:1') }
    expect(found({ manifests }, folder).images).toEqual(['folder:2', 'listed:1', 'own:2'])
    expect(found({ type: 'manifest', tag: '', manifests }).images).toEqual(['own:2'])
  })

  it('a pack that a profile contains more than once has the images of its own values', () => {
    const profile = profileOf([
      profilePack('a', listed('one:1')),
      profilePack('a', '', { displayName: 'a-2' }),
    ])
    const folder = packOf('a', { values: listed('folder:1') })
    const imagesOf = imagesIn(definitionOf([profile], [folder]))
    expect([0, 1].map((index) => imagesOf(profile, index, folder).images)).toEqual([['one:1'], ['folder:1']])
  })
})

describe('the guessed images of a pack', () => {
  const guessed = (values: string, ...manifests: string[]) => {
    const profile = profileOf([profilePack('a', values)])
    const folder = packOf('a', {
      manifests: manifests.map((content, index) => ({ place: `m${index}`, content })),
    })
    const { images, guessed: unsure } = imagesIn(definitionOf([profile], [folder]))(profile, 0, folder)
    expect(images).toEqual([])
    return unsure.map(({ image, isTagKnown }) => (isTagKnown ? image : `${image} (tag unknown)`))
  }
  const digest = `sha256:${'0'.repeat(64)}`

  it.each<[string, string, string[]]>([
    ['repository and tag', 'image: { repository: a/b, tag: v1 }', ['a/b:v1']],
    [
      'repository and tag with a registry',
      'image: { registry: quay.io, repository: a/b, tag: "2" }',
      ['quay.io/a/b:2'],
    ],
    [
      'repository and tag with a registry that has a port',
      'image: { registry: "r.local:5000/", repository: b, tag: 1.10 }',
      ['r.local:5000/b:1.10'],
    ],
    [
      'repository and tag beside other values',
      'x: { repository: a/b, tag: v1, pullPolicy: Always }',
      ['a/b:v1'],
    ],
    ['any depth, in lists too', 'x: { y: [{ z: { image: { repository: a, tag: b } } }] }', ['a:b']],
    ['repository and digest', `x: { repository: a/b, digest: "${digest}" }`, [`a/b@${digest}`]],
    ['tag and digest', `x: { repository: a/b, tag: v1, sha: "${'0'.repeat(64)}" }`, [`a/b:v1@${digest}`]],
    [
      'a repository without tag, which the chart has',
      'image: { repository: a/b }\nc: { repository: a/d, tag: "" }\ne: { repository: a/f, tag: }',
      ['a/b (tag unknown)', 'a/d (tag unknown)', 'a/f (tag unknown)'],
    ],
    ['a tag in the repository', 'image: { repository: "a/b:v1", tag: "" }', ['a/b:v1']],
    [
      'name below image',
      'image: { registry: quay.io, name: a/b, tag: v1 }\nother: { name: c, tag: v1 }',
      ['quay.io/a/b:v1'],
    ],
    ['one text', 'image: "a/b:v1"\ninitImage: "c/d"', ['a/b:v1', 'c/d (tag unknown)']],
    [
      'a text with the tag beside it',
      'image: a/b\ntag: v1\nx: { image: c/d, imageTag: v2 }',
      ['a/b:v1', 'c/d:v2'],
    ],
    [
      'macros',
      'image: { repository: "{{ .spectro.var.r }}/b", tag: "{{.spectro.var.t}}" }',
      ['{{ .spectro.var.r }}/b:{{.spectro.var.t}}'],
    ],
    [
      'nothing that cannot be an image',
      'a: { repository: "https://charts.local/x", tag: v1 }\nb: { repository: "git@host:a/b", tag: v1 }\nimage: true\nc: { image: "two words" }\nd: { repository: a/b }\nimagePullPolicy: Always\ne: { image: "{{ .Values.a }}" }\nf: { image: "" }',
      [],
    ],
  ])('images are guessed from %s', (_name, chart, expected) => {
    expect(guessed(`charts:\n  some:\n${chart.replaceAll(/^/gm, '    ')}\n`)).toEqual(expected)
  })

  it('images are guessed also from values for manifests that are templates', () => {
    const values = 'manifests: { web: { image: { repository: a/b, tag: v1 }, db: { images: "c/d:v2" } } }\n'
    expect(guessed(values)).toEqual(['a/b:v1', 'c/d:v2'])
  })

  it('images are guessed only from values of charts and manifests', () => {
    expect(
      guessed('image: { repository: a/b, tag: v1 }\npack: { image: { repository: a/b, tag: v1 } }\n'),
    ).toEqual([])
  })

  it('images are guessed from plain lines of manifests that are templates, not from comments', () => {
    const template = [
      '{{ if .Values.a }}',
      'spec:',
      '  containers:',
      '  - image: a/b:v1 # one',
      "    - image: 'c/d'",
      '  - name: x',
      '    image: "e/f:{{ .spectro.var.t }}"',
      '    image: {{ .Values.image }}',
      '    image: g/{{ .Values.image }}:1',
      '    # image: h/i:1',
      '    imagePullPolicy: Always',
      '{{ end }}',
    ].join('\n')
    expect(guessed('a: 1\n', template)).toEqual(['a/b:v1', 'c/d (tag unknown)', 'e/f:{{ .spectro.var.t }}'])
  })

  it('only images of templates are guessed if the pack lists its images', () => {
    const values =
      'pack: { content: { images: [{ image: "l:1" }] } }\ncharts: { x: { image: { repository: a, tag: b } } }\n'
    const profile = profileOf([profilePack('a', values)])
    const folder = packOf('a', {
      manifests: [{ place: 'm', content: '{{ if .Values.a }}\nimage: t:1\nimage: l:1\n{{ end }}' }],
    })
    expect(imagesIn(definitionOf([profile], [folder]))(profile, 0, folder)).toEqual({
      images: ['l:1'],
      guessed: [{ image: 't:1', isTagKnown: true }],
    })
  })

  it('images are guessed in linear time', () => {
    const begin = cpuNow()
    expect(guessed(`charts:\n  a:\n    image: "${':'.repeat(1_000_000)}/"\n`)).toEqual([])
    expect(guessed('a: 1\n', `{{ x }}\n${`image: ${'a'.repeat(1_000_000)}"\n`.repeat(2)}`)).toEqual([])
    expect(cpuNow() - begin).toBeLessThan(3_000)
  })
})
