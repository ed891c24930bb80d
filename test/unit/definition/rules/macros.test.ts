import { describe, expect, it } from 'vitest'
import { checkDefinition } from '../../../../src/definition/rules/check.ts'
import { findMacros } from '../../../../src/definition/rules/macro.ts'
import { cpuNow } from '../../../support/cpu-time.ts'
import { definitionOf, packOf, profileOf, profilePack } from '../../../support/definitions.ts'
import { createRandom } from '../../../support/random.ts'
import {
  appDefinition,
  render,
  renderValues,
  variable,
  type Given,
} from '../../../support/rendered-values.ts'

describe('a macro', () => {
  it.each<[string, string, [string, string] | ['invalid'] | []]>([
    ['is a variable', 'a: {{ .spectro.var.x }}', ['var', 'x']],
    ['needs no spaces', 'a: {{.spectro.var.x}}', ['var', 'x']],
    ['may have many spaces and tabs', '{{ \t .spectro.var.x\t }}', ['var', 'x']],
    ['may have dots in its name', '{{ .spectro.var.a.b.c }}', ['var', 'a.b.c']],
    ['may have letters of any script', '{{ .spectro.var.gr\u00f6\u00dfe }}', ['var', 'gr\u00f6\u00dfe']],
    ['is a fact', '{{ .spectro.system.cluster.name }}', ['system', 'cluster.name']],
    ['is a value of a pack', '{{ .spectro.pack.edge-k3s.a.b }}', ['pack', 'edge-k3s.a.b']],
    ['is a macro of a project', '{{ .spectro.macro.region }}', ['macro', 'region']],
    ['is found in more braces', '{{{ .spectro.var.x }}}', ['var', 'x']],
    ['may follow other braces', '{{ {{ .spectro.var.x }}', ['var', 'x']],
    ['is not an expression of Helm', '{{ .Values.spectro.var.x }}', []],
    ['does not begin with another word', '{{ .spectroclusters.var.x }}', []],
    ['needs its leading dot', '{{ spectro.var.x }}', []],
    [
      'in the call of a function is found',
      '{{ upper .spectro.system.cluster.name }}',
      ['system', 'cluster.name'],
    ],
    ['is not found in a text argument', '{{ upper ".spectro.var.x" }}', []],
    ['is not found in a comment of a template', '{{/* .spectro.var.x */}}', []],
    ['needs two braces', '{ .spectro.var.x }', []],
    ['with a pipe is invalid', '{{ .spectro.var.x | quote }}', ['invalid']],
    ['may have trim markers', '{{- .spectro.var.x -}}', ['var', 'x']],
    ['with a trim marker that no blank follows is invalid', '{{-.spectro.var.x }}', ['invalid']],
    ['of another kind is invalid', '{{ .spectro.vars.x }}', ['invalid']],
    ['without a name is invalid', '{{ .spectro.var. }}', ['invalid']],
    ['without a kind is invalid', '{{ .spectro }}', ['invalid']],
    ['with two names is invalid', '{{ .spectro.var.x y }}', ['invalid']],
    ['that does not end is invalid', '{{ .spectro.var.x', ['invalid']],
    ['that ends with one brace is invalid', '{{ .spectro.var.x }', ['invalid']],
    ['may span lines', '{{\n  .spectro.var.x\r\n}}', ['var', 'x']],
    ['with an endless name is invalid', `{{ .spectro.var.${'x'.repeat(2_000)} }}`, ['invalid']],
  ])('a macro %s', (_name, text, [kind, name]) => {
    const found = findMacros(text).map(({ references: [asked], expression }) =>
      expression === undefined ? ['invalid'] : [asked?.kind, asked?.name],
    )
    expect(found).toEqual(kind === undefined ? [] : name === undefined ? [[kind]] : [[kind, name]])
  })

  it.each([
    '{',
    '{{',
    '{{ ',
    '{{.spectro',
    '{{ .spectro.var.a ',
    '{{ .spectro.var.a }',
    '{{-',
    '{{\t',
    '{{ .spectro.var.a }}',
    '{{a .spectro',
    '{{ .spectro.system.a | ',
    '{{ "',
    '{{ `',
    '{{a "{{a `{{a .spectro.system.x ',
    '{{ a .spectro.var.b .spectro.var.b .spectro.var.b .spectro.var.b .spectro.var.b ',
    `{{a "${'{{a '.repeat(100)}" .spectro.`,
    '{{ .spectro.system.cluster.name -}}   {{- .spectro.system.cluster.name }}',
    `${' '.repeat(1_000)}{{- .spectro.var.a -}}${' '.repeat(1_000)}`,
    `{{ .spectro.system.a ${'('.repeat(900)}`,
  ])('macros are found in linear time among %j', (piece) => {
    const text = piece.repeat(Math.ceil(1_000_000 / piece.length))
    const begin = cpuNow()
    findMacros(text)
    expect(cpuNow() - begin).toBeLessThan(2_000)
  })
})

describe('rendering', () => {
  it.each<[string, string, string, Given]>([
    ['inserts a default', 'a: {{ .spectro.var.v }}', 'a: 80', variable('80', { format: 'number' })],
    [
      'prefers the given value',
      'a: "{{.spectro.var.v}}!"',
      'a: "y!"',
      { ...variable('x'), given: [{ name: 'v', value: 'y' }] },
    ],
    ['inserts nothing for an optional variable', 'a: "{{.spectro.var.v}}"', 'a: ""', variable('')],
    ['inserts `$` unchanged', 'a: "{{.spectro.var.v}}"', 'a: "$& $1 $$ $\'"', variable("$& $1 $$ $'")],
    [
      'replaces several macros inside a text',
      'a: x{{.spectro.var.v}}y{{ .spectro.var.v }}z',
      'a: x1y1z',
      variable('1'),
    ],
    ['inserts facts', 'a: {{ .spectro.system.cluster.name }}', 'a: c1', { facts: { clusterName: 'c1' } }],
    ['replaces macros in comments', 'a: 1 # {{ .spectro.var.v }}', 'a: 1 # x', variable('x')],
    ['replaces macros in keys', '{{ .spectro.var.v }}: 1', 'x: 1', variable('x')],
    [
      'changes nothing else',
      '\ufeff# c\r\na:   {{ .spectro.var.v }}  \r\nb: "{{ .Values.x }}"\t\r\n\r\n',
      '\ufeff# c\r\na:   x  \r\nb: "{{ .Values.x }}"\t\r\n\r\n',
      variable('x'),
    ],
    ['inserts a value of the same pack', 'a: 1.10\nb: v{{ .spectro.pack.app.a }}', 'a: 1.10\nb: v1.10', {}],
    [
      'inserts a quoted value without its quotes',
      'a: "x\\ty"\nb: {{ .spectro.pack.app.a }}',
      'a: "x\\ty"\nb: x\ty',
      {},
    ],
    [
      'enters sequences',
      'a: [{ b: 1 }, { b: 2 }]\nc: {{ .spectro.pack.app.a.1.b }}',
      'a: [{ b: 1 }, { b: 2 }]\nc: 2',
      {},
    ],
    [
      'finds keys with dots',
      'a.b:\n  c.d: x\ne: {{ .spectro.pack.app.a.b.c.d }}',
      'a.b:\n  c.d: x\ne: x',
      {},
    ],
    [
      'finds keys named like parts of objects',
      '__proto__: { x: 1 }\nb: {{ .spectro.pack.app.__proto__.x }}',
      '__proto__: { x: 1 }\nb: 1',
      {},
    ],
    ['leaves a macro without a value', 'a: "{{ .spectro.var.w }}"', 'a: "{{ .spectro.var.w }}"', {}],
  ])('rendering %s', (_name, values, expected, given) => {
    expect(renderValues(values, given).content).toBe(expected)
  })

  it('values of other packs are resolved with the variables of their own profile', () => {
    const first = profileOf(
      [profilePack('one', 'a: "{{ .spectro.pack.two.x.y }}"')],
      [{ name: 'v', defaultValue: 'mine' }],
    )
    const second = profileOf(
      [profilePack('two', 'x:\n  y: "{{ .spectro.var.v }}-{{ .spectro.pack.one.b }}"')],
      [{ name: 'v', defaultValue: 'theirs' }],
      { uid: 'u2' },
    )
    const withB = { ...first, packs: [profilePack('one', 'a: "{{ .spectro.pack.two.x.y }}"\nb: 2')] }
    const { texts, problems } = render(definitionOf([withB, second]))
    expect(texts[0]?.content).toBe('a: "theirs-2"\nb: 2')
    expect(problems).toEqual([])
  })

  it('the values of a folder are rendered only if the profile gives none', () => {
    const packs = [
      packOf('one', {
        values: 'a: {{ .spectro.var.v }}',
        manifests: [{ place: 'packs/one-1.0.0/manifests/m.yaml', content: 'b: {{ .spectro.var.v }}' }],
      }),
    ]
    const contents = (values: string) =>
      render(
        definitionOf([profileOf([profilePack('one', values)], [{ name: 'v', defaultValue: 'x' }])], packs),
      ).texts.map(({ place, content }) => `${place} ${content}`)
    expect(contents('')).toEqual([
      'packs/one-1.0.0/values.yaml a: x',
      'packs/one-1.0.0/manifests/m.yaml b: x',
    ])
    expect(contents('c: 1')).toEqual([
      'profiles/u1/profile.json#spec.template.packs[0].values c: 1',
      'packs/one-1.0.0/manifests/m.yaml b: x',
    ])
  })

  it('rendering does not change texts without macros', () => {
    const random = createRandom(3)
    const pieces = [
      '{{',
      '}}',
      '{{ .Values.x }}',
      '{',
      '}',
      '.spectro',
      'spectro',
      'a',
      ': ',
      '\n',
      '\r\n',
      '  ',
      '- ',
      '"',
      "'",
      '|',
      '#',
      '\ue000',
      '\ue0001\ue000',
      '\ufeff',
      '\u{1F600}',
      '\ud800',
      '---\n',
      '&a ',
      '*a',
      '\0',
      '\t',
      '$&',
    ]
    for (let round = 0; round < 3_000; round += 1) {
      const values = `x${random.text(pieces, random.below(30))}`
      if (findMacros(values).length > 0) continue
      expect(renderValues(values).content).toBe(values)
      checkDefinition(appDefinition(values))
    }
  })

  it('rendering changes nothing but the macros, whatever surrounds them', () => {
    const random = createRandom(4)
    const pieces = [
      '{{ .spectro.var.v }}',
      '{{.spectro.var.v}}',
      '{{ .Values.x }}',
      'a',
      ': ',
      '\n',
      '  ',
      '"',
      "'",
      '|\n',
      '#',
      '\ue000',
      '{',
      '}',
      '[',
      '\u{1F600}',
    ]
    for (let round = 0; round < 3_000; round += 1) {
      const values = `x: ${random.text(pieces, random.below(20))}`
      // The naive way, which is right as long as the value contains no braces.
      const expected = values.replace(/\{\{ ?\.spectro\.var\.v ?\}\}/g, () => '<80>')
      expect(renderValues(values, variable('<80>')).content).toBe(expected)
    }
  })
})

describe('a macro that is wrong', () => {
  const declared: Given = {
    variables: [
      { name: 'port', defaultValue: 'x' },
      { name: 'needed', required: true },
    ],
  }
  it.each<[string, string, string[], string]>([
    [
      'an unknown variable',
      'a: 1\nb: x{{ .spectro.var.prot }}',
      ['VariableUndeclared 2:5'],
      'declares no variable prot; did you mean port?',
    ],
    [
      'an unknown variable in a comment, as a warning',
      '# {{ .spectro.var.prot }}\nb: 1',
      ['VariableUndeclared 1:3'],
      'declares no variable prot',
    ],
    [
      'a required variable without value',
      'a: {{ .spectro.var.needed }}',
      ['MacroUnset 1:4'],
      'variable needed is required and has no value',
    ],
    [
      'an unknown fact',
      'a: {{ .spectro.system.cluster.nam }}',
      ['MacroSystemUnknown 1:4'],
      'did you mean cluster.name?',
    ],
    [
      'a fact that is not known',
      'a: {{ .spectro.system.cluster.uid }}',
      ['MacroUnset 1:4'],
      'cluster.uid is not known',
    ],
    [
      'an unknown pack',
      'a: {{ .spectro.pack.ap.b }}',
      ['MacroPackUnknown 1:4'],
      'no profile contains a pack ap; did you mean app?',
    ],
    [
      'an unknown path',
      'a:\n  tag: 1\nb: {{ .spectro.pack.app.a.tga }}',
      ['MacroPathEmpty 3:4'],
      'app.a has no tga; did you mean tag?',
    ],
    [
      'a path to a mapping',
      'a: { b: 1 }\nc: {{ .spectro.pack.app.a }}',
      ['MacroPathUnknown 2:4'],
      'app.a is not a single value',
    ],
    ['a path to nothing', 'a:\nc: {{ .spectro.pack.app.a }}', ['MacroPathEmpty 2:4'], 'app.a has no value'],
    [
      'a path below a value',
      'a: 1\nc: {{ .spectro.pack.app.a.b }}',
      ['MacroPathEmpty 2:4'],
      'app.a has nothing below it',
    ],
    ['a pack alone', 'c: {{ .spectro.pack.app }}', ['MacroPathUnknown 1:4'], 'app is not a single value'],
    [
      'a function of a variable',
      'a: {{ .spectro.var.port | quote }}',
      ['MacroInvalid 1:4'],
      'applies functions to a variable of the profile',
    ],
    ['a value that contains itself', 'a: "{{ .spectro.pack.app.a }}"', ['MacroCycle 1:5'], 'app.a -> app.a'],
    [
      'a circle of three',
      'a: "{{.spectro.pack.app.b}}"\nb: "{{.spectro.pack.app.c}}"\nc: "{{.spectro.pack.app.a}}"',
      ['MacroCycle 1:5'],
      'app.b -> app.c -> app.a -> app.b',
    ],
  ])('a wrong macro is reported with its place: %s', (_name, values, places, message) => {
    const result = renderValues(values, declared)
    expect(result.places).toEqual(places)
    expect(result.problems[0]?.message).toContain(message)
  })

  it('a macro for a missing value of a pack becomes an empty text, with a warning', () => {
    const result = renderValues('a:\nb: "x{{ .spectro.pack.app.a }}y{{ .spectro.pack.app.c.d }}"')
    expect(result.content).toBe('a:\nb: "xy"')
    expect(result.problems.map(({ code, severity }) => `${code} ${severity}`)).toEqual([
      'MacroPathEmpty warning',
      'MacroPathEmpty warning',
    ])
  })

  it('a macro for a missing value of a pack becomes its default, if it has one', () => {
    const result = renderValues('a:\nb: "{{ .spectro.pack.app.a | default `1.19.0` }}"')
    expect(result.content).toBe('a:\nb: "1.19.0"')
    expect(result.problems).toEqual([])
  })

  it('a wrong macro is a warning in a comment and an error elsewhere', () => {
    const { problems } = renderValues('a: {{ .spectro.var.x }} # {{ .spectro.var.y }}')
    expect(problems.map(({ severity }) => severity)).toEqual(['error', 'warning'])
  })
})
