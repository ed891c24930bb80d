import { describe, expect, it } from 'vitest'
import type { Variable } from '../../src/cluster/definition.ts'
import { checkDefinition } from '../../src/cluster/rules/check.ts'
import { findMacros } from '../../src/cluster/rules/macro.ts'
import { renderDefinition } from '../../src/cluster/rules/macros.ts'
import type { SystemFacts } from '../../src/cluster/rules/macro-values.ts'
import type { GivenVariable } from '../../src/cluster/rules/variables.ts'
import { definitionOf, packOf, profileOf, profilePack } from '../support/definitions.ts'
import { createRandom } from '../support/random.ts'

const at = (problems: ReturnType<typeof checkDefinition>) =>
  problems.map(({ code, place }) => `${code} ${place.replace(/^.*values:/, '')}`)

interface Given {
  readonly variables?: readonly Variable[]
  readonly given?: readonly GivenVariable[]
  readonly facts?: SystemFacts
}

/** One pack `app` with these values. */
const render = (values: string, { variables = [], given = [], facts = {} }: Given = {}) => {
  const { texts, problems } = renderDefinition(
    definitionOf([profileOf([profilePack('app', values)], variables)]),
    {
      given,
      facts,
    },
  )
  return { content: texts[0]?.content, problems, at: at(problems) }
}

const v = (defaultValue: string, rest: Partial<Variable> = {}): Given => ({
  variables: [{ name: 'v', defaultValue, ...rest }],
})

describe('a macro', () => {
  it.each<[string, string, [string, string] | ['invalid'] | []]>([
    ['is a variable', 'a: {{ .spectro.var.x }}', ['var', 'x']],
    ['needs no spaces', 'a: {{.spectro.var.x}}', ['var', 'x']],
    ['may have many spaces and tabs', '{{ \t .spectro.var.x\t }}', ['var', 'x']],
    ['may have dots in its name', '{{ .spectro.var.a.b.c }}', ['var', 'a.b.c']],
    ['may have letters of any script', '{{ .spectro.var.gr\u00f6\u00dfe }}', ['var', 'gr\u00f6\u00dfe']],
    ['is a fact', '{{ .spectro.system.cluster.name }}', ['system', 'cluster.name']],
    ['is a value of a pack', '{{ .spectro.pack.edge-k3s.a.b }}', ['pack', 'edge-k3s.a.b']],
    ['stands in more braces', '{{{ .spectro.var.x }}}', ['var', 'x']],
    ['follows braces of others', '{{ {{ .spectro.var.x }}', ['var', 'x']],
    ['of Helm is none', '{{ .Values.spectro.var.x }}', []],
    ['of another word is none', '{{ .spectroclusters.var.x }}', []],
    ['without dot is none', '{{ spectro.var.x }}', []],
    ['in the call of a function is Helm\u2019s', '{{ printf .spectro.var.x }}', []],
    ['of a single brace is none', '{ .spectro.var.x }', []],
    ['with a pipe is invalid', '{{ .spectro.var.x | quote }}', ['invalid']],
    ['with trim marks is invalid', '{{- .spectro.var.x -}}', ['invalid']],
    ['of another kind is invalid', '{{ .spectro.vars.x }}', ['invalid']],
    ['without a name is invalid', '{{ .spectro.var. }}', ['invalid']],
    ['without a kind is invalid', '{{ .spectro }}', ['invalid']],
    ['with two names is invalid', '{{ .spectro.var.x y }}', ['invalid']],
    ['that does not end is invalid', '{{ .spectro.var.x', ['invalid']],
    ['that ends with one brace is invalid', '{{ .spectro.var.x }', ['invalid']],
    ['over two lines is invalid', '{{ .spectro.var.x\n}}', ['invalid']],
    ['with an endless name is invalid', `{{ .spectro.var.${'x'.repeat(2_000)} }}`, ['invalid']],
  ])('%s', (_name, text, [kind, name]) => {
    const macros = findMacros(text)
    expect(macros.map((macro) => macro.kind)).toEqual(kind === undefined ? [] : [kind])
    expect(macros[0]?.name ?? '').toBe(name ?? '')
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
  ])('is searched for in linear time among %j', (piece) => {
    const text = piece.repeat(Math.ceil(2_500_000 / piece.length))
    const begin = performance.now()
    findMacros(text)
    expect(performance.now() - begin).toBeLessThan(2_000)
  })
})

describe('rendering', () => {
  it.each<[string, string, string, Given]>([
    ['puts a default in', 'a: {{ .spectro.var.v }}', 'a: 80', v('80', { format: 'number' })],
    [
      'prefers what is given',
      'a: "{{.spectro.var.v}}!"',
      'a: "y!"',
      { ...v('x'), given: [{ name: 'v', value: 'y' }] },
    ],
    ['takes nothing for an optional variable', 'a: "{{.spectro.var.v}}"', 'a: ""', v('')],
    ['takes no `$` for more than it is', 'a: "{{.spectro.var.v}}"', 'a: "$& $1 $$ $\'"', v("$& $1 $$ $'")],
    [
      'renders in the middle, several times',
      'a: x{{.spectro.var.v}}y{{ .spectro.var.v }}z',
      'a: x1y1z',
      v('1'),
    ],
    ['renders facts', 'a: {{ .spectro.system.cluster.name }}', 'a: c1', { facts: { clusterName: 'c1' } }],
    ['renders comments', 'a: 1 # {{ .spectro.var.v }}', 'a: 1 # x', v('x')],
    ['renders keys', '{{ .spectro.var.v }}: 1', 'x: 1', v('x')],
    [
      'leaves all else alone',
      '\ufeff# c\r\na:   {{ .spectro.var.v }}  \r\nb: "{{ .Values.x }}"\t\r\n\r\n',
      '\ufeff# c\r\na:   x  \r\nb: "{{ .Values.x }}"\t\r\n\r\n',
      v('x'),
    ],
    ['renders an own value of the pack', 'a: 1.10\nb: v{{ .spectro.pack.app.a }}', 'a: 1.10\nb: v1.10', {}],
    ['takes the quotes off', 'a: "x\\ty"\nb: {{ .spectro.pack.app.a }}', 'a: "x\\ty"\nb: x\ty', {}],
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
    ['leaves a macro that stands for nothing', 'a: "{{ .spectro.var.w }}"', 'a: "{{ .spectro.var.w }}"', {}],
  ])('%s', (_name, values, expected, given) => {
    expect(render(values, given).content).toBe(expected)
  })

  it('resolves values of other packs with the variables of their own profile', () => {
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
    const { texts, problems } = renderDefinition(definitionOf([withB, second]), { given: [], facts: {} })
    expect(texts[0]?.content).toBe('a: "theirs-2"\nb: 2')
    expect(problems).toEqual([])
  })

  it('renders the values of a folder only where the profile gives none', () => {
    const packs = [
      packOf('one', {
        values: 'a: {{ .spectro.var.v }}',
        manifests: [{ place: 'packs/one-1.0.0/manifests/m.yaml', content: 'b: {{ .spectro.var.v }}' }],
      }),
    ]
    const contents = (values: string) =>
      renderDefinition(
        definitionOf([profileOf([profilePack('one', values)], [{ name: 'v', defaultValue: 'x' }])], packs),
        { given: [], facts: {} },
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

  it('is the identity on texts without macros', () => {
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
      const values = `x${Array.from({ length: random.below(30) }, () => random.pick(pieces)).join('')}`
      if (findMacros(values).length > 0) continue
      expect(render(values).content).toBe(values)
      checkDefinition(definitionOf([profileOf([profilePack('app', values)])]))
    }
  })

  it('changes nothing but the macros, whatever stands around them', () => {
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
      const parts = Array.from({ length: random.below(20) }, () => random.pick(pieces))
      const values = `x: ${parts.join('')}`
      // The naive way, which is right as long as the value holds no braces.
      const expected = values.replace(/\{\{ ?\.spectro\.var\.v ?\}\}/g, () => '<80>')
      expect(render(values, v('<80>')).content).toBe(expected)
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
      'no profile holds a pack ap; did you mean app?',
    ],
    [
      'an unknown path',
      'a:\n  tag: 1\nb: {{ .spectro.pack.app.a.tga }}',
      ['MacroPathUnknown 3:4'],
      'app.a has no tga; did you mean tag?',
    ],
    [
      'a path to a mapping',
      'a: { b: 1 }\nc: {{ .spectro.pack.app.a }}',
      ['MacroPathUnknown 2:4'],
      'app.a is no single value',
    ],
    [
      'a path to nothing',
      'a:\nc: {{ .spectro.pack.app.a }}',
      ['MacroPathUnknown 2:4'],
      'app.a is no single value',
    ],
    [
      'a path below a value',
      'a: 1\nc: {{ .spectro.pack.app.a.b }}',
      ['MacroPathUnknown 2:4'],
      'app.a has nothing below it',
    ],
    ['a pack alone', 'c: {{ .spectro.pack.app }}', ['MacroPathUnknown 1:4'], 'app is no single value'],
    ['a pipe', 'a: {{ .spectro.var.port | quote }}', ['MacroInvalid 1:4'], 'begins like a macro but is none'],
    ['a value that holds itself', 'a: "{{ .spectro.pack.app.a }}"', ['MacroCycle 1:5'], 'app.a -> app.a'],
    [
      'a circle of three',
      'a: "{{.spectro.pack.app.b}}"\nb: "{{.spectro.pack.app.c}}"\nc: "{{.spectro.pack.app.a}}"',
      ['MacroCycle 1:5'],
      'app.b -> app.c -> app.a -> app.b',
    ],
  ])('is reported with its place: %s', (_name, values, places, message) => {
    const result = render(values, declared)
    expect(result.at).toEqual(places)
    expect(result.problems[0]?.message).toContain(message)
  })

  it('in a comment is a warning, elsewhere an error', () => {
    const { problems } = render('a: {{ .spectro.var.x }} # {{ .spectro.var.y }}')
    expect(problems.map(({ severity }) => severity)).toEqual(['error', 'warning'])
  })
})

describe('a value in the place of its macro', () => {
  const number = (text: string): Given => v(text, { format: 'number' })
  it.each<[string, string, Given, string[]]>([
    ['a number without quotes', 'a: {{.spectro.var.v}}', number('80'), []],
    ['a number in double quotes', 'a: "{{.spectro.var.v}}"', number('80'), ['MacroTypeChanged 1:5']],
    ['a number in single quotes', "a: '{{.spectro.var.v}}'", number('80'), ['MacroTypeChanged 1:5']],
    [
      'a boolean in quotes',
      'a: "{{.spectro.var.v}}"',
      v('true', { format: 'boolean' }),
      ['MacroTypeChanged 1:5'],
    ],
    ['a number in quotes with other text', 'a: "port-{{.spectro.var.v}}"', number('80'), []],
    ['a number in a quoted key', '"{{.spectro.var.v}}": 1', number('80'), []],
    ['a text in quotes', 'a: "{{.spectro.var.v}}"', v('80'), []],
    ['a text that becomes a number', 'a: {{.spectro.var.v}}', v('1.16'), ['MacroTypeChanged 1:4']],
    [
      'a text that becomes a boolean for YAML 1.1',
      'a: {{.spectro.var.v}}',
      v('yes'),
      ['MacroTypeChanged 1:4'],
    ],
    ['a text that becomes null', 'a: {{.spectro.var.v}}', v('~'), ['MacroTypeChanged 1:4']],
    ['an empty text that becomes null', 'a: {{.spectro.var.v}}', v(''), ['MacroTypeChanged 1:4']],
    [
      'a text that becomes a time for YAML 1.1',
      'a: {{.spectro.var.v}}',
      v('12:30:00'),
      ['MacroTypeChanged 1:4'],
    ],
    [
      'two that become one number',
      'a: {{.spectro.var.v}}.{{.spectro.var.v}}',
      number('1'),
      ['MacroTypeChanged 1:4'],
    ],
    ['a number in the key', '{{.spectro.var.v}}: x', number('1'), []],
    ['a text that stays text', 'a: v{{.spectro.var.v}}', v('1.16'), []],
    ['a version', 'a: {{.spectro.var.v}}', v('1.2.3', { format: 'version' }), []],
    ['a colon and space without quotes', 'a: {{.spectro.var.v}}', v('b: c'), ['MacroBreaksYaml 1:4']],
    ['a colon at the end without quotes', 'a: {{.spectro.var.v}}', v('b:'), ['MacroBreaksYaml 1:4']],
    ['a colon inside a word', 'a: {{.spectro.var.v}}', v('http://b:80'), []],
    ['a colon and space in quotes', 'a: "{{.spectro.var.v}}"', v('b: c'), []],
    ['a comment without quotes', 'a: {{.spectro.var.v}}', v('b #c'), ['MacroBreaksYaml 1:4']],
    ['an indicator at the begin', 'a: {{.spectro.var.v}}', v('*b'), ['MacroBreaksYaml 1:4']],
    ['an indicator in the middle', 'a: b{{.spectro.var.v}}', v('*b'), []],
    ['an item of a list', 'a: {{.spectro.var.v}}', v('- b'), ['MacroBreaksYaml 1:4']],
    ['a comma in brackets', 'a: [{{.spectro.var.v}}]', v('b, c'), ['MacroBreaksYaml 1:5']],
    ['a comma without brackets', 'a: {{.spectro.var.v}}', v('b, c'), []],
    [
      'a line break without quotes',
      'a: {{.spectro.var.v}}',
      v('b\nc', { inputType: 'multiline' }),
      ['MacroBreaksYaml 1:4'],
    ],
    [
      'a line break in double quotes',
      'a: "{{.spectro.var.v}}"',
      v('b\nc', { inputType: 'multiline' }),
      ['MacroBreaksYaml 1:5'],
    ],
    [
      'a line break in a block',
      'a: |\n  {{.spectro.var.v}}\n',
      v('b\nc', { inputType: 'multiline' }),
      ['MacroBreaksYaml 2:3'],
    ],
    [
      'a line break in a comment',
      'a: 1 # {{.spectro.var.v}}\n',
      v('b\nc', { inputType: 'multiline' }),
      ['MacroBreaksYaml 1:8'],
    ],
    ['a double quote in double quotes', 'a: "{{.spectro.var.v}}"', v('b"'), ['MacroBreaksYaml 1:5']],
    ['a backslash in double quotes', 'a: "{{.spectro.var.v}}"', v('b\\n'), ['MacroBreaksYaml 1:5']],
    ['a single quote in double quotes', 'a: "{{.spectro.var.v}}"', v("b'"), []],
    ['a single quote in single quotes', "a: '{{.spectro.var.v}}'", v("b'c"), ['MacroBreaksYaml 1:5']],
    ['a backslash in single quotes', "a: '{{.spectro.var.v}}'", v('b\\n'), []],
    ['quotes in a block', 'a: |\n  {{.spectro.var.v}}', v('"b: \'#c'), []],
    ['a control character', 'a: "{{.spectro.var.v}}"', v('b\u0007'), ['MacroBreaksYaml 1:5']],
    [
      'a number of another pack in quotes',
      'a: 8080\nb: "{{.spectro.pack.app.a}}"',
      {},
      ['MacroTypeChanged 2:5'],
    ],
    ['a version of another pack in quotes, there too', 'a: "1.16"\nb: "{{.spectro.pack.app.a}}"', {}, []],
    [
      'a version of another pack that loses its quotes',
      'a: "1.16"\nb: {{.spectro.pack.app.a}}',
      {},
      ['MacroTypeChanged 2:4'],
    ],
  ])('%s', (_name, values, given, problems) => {
    expect(render(values, given).at).toEqual(problems)
  })

  it('is never told', () => {
    const given = v('topsecret: "\n', { isSensitive: true, inputType: 'multiline' })
    const { problems } = render(
      'a: {{.spectro.var.v}}\nb: "{{.spectro.var.v}}"\nc: {{.spectro.pack.app.b}}',
      given,
    )
    expect(problems.length).toBeGreaterThan(1)
    expect(JSON.stringify(problems)).not.toContain('topsecret')
  })

  it('is held to its format before anybody gave one', () => {
    const definition = definitionOf([
      profileOf(
        [profilePack('app', 'a: "{{.spectro.var.v}}"')],
        [{ name: 'v', format: 'number', required: true }],
      ),
    ])
    expect(at(checkDefinition(definition))).toEqual(['MacroTypeChanged 1:5'])
  })
})
