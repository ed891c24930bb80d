import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { toStrictYaml, readYaml } from '../../../../src/definition/rules/yaml-text.ts'
import { findMacros } from '../../../../src/definition/rules/macro.ts'
import { plainKind } from '../../../../src/base/write-yaml.ts'
import { cpuNow } from '../../../support/cpu-time.ts'
import { createRandom } from '../../../support/random.ts'
import { renderValues, variable } from '../../../support/rendered-values.ts'

// Made by test/fixtures/helm/record-yaml.ts.
const readRecord = (name: string) =>
  JSON.parse(readFileSync(join(import.meta.dirname, '../../../fixtures/helm', name), 'utf8')) as unknown
const scalars = readRecord('scalars.json') as [string, string][]
const texts = readRecord('texts.json') as [string, { value?: unknown; refused?: string }][]

/** All scalars as text; how plain scalars are read is tested separately. */
const spelled = (value: unknown): unknown => {
  if (value === null || value === undefined) return ''
  if (Array.isArray(value)) return value.map(spelled)
  if (typeof value !== 'object') return (value as string | number | boolean).toString()
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, spelled(each)]))
}
const read = (text: string) => {
  let value: unknown = {}
  let count = 0
  const { problems } = readYaml(text, [], (document) => {
    if ((count += 1) === 1 && !text.includes('*')) value = document.toJS()
  })
  return { value, problems: problems.filter(({ code }) => code !== 'YamlKeyTwice') }
}

describe('a plain scalar', () => {
  it.each(scalars.filter(([, kind]) => kind !== 'refused'))(
    'the plain scalar %s is a %s, as in Helm and kubectl',
    (text, kind) => {
      expect(plainKind(text)).toBe(kind === 'string' ? 'text' : kind)
    },
  )
})

describe('a text that Helm and kubectl take', () => {
  const taken = texts.filter(([, { refused }]) => refused === undefined)

  it.each(taken)(
    'Helm and kubectl accept %j, and so does the parser, with the same values',
    (text, { value }) => {
      const ours = read(text)
      expect(ours.problems).toEqual([])
      // The values of aliases and merges are not compared here.
      if (!/[*]|<</.test(text)) expect(spelled(ours.value)).toEqual(spelled(value))
    },
  )

  it.each(['a: [x\nb: 1\n', 'a: {\nb: "x\ny"\n---\nc: 1', 'a: "x\nb: 1\n', 'a: "x\n---\ny"'])(
    'a text with an unclosed quote or bracket is left to the parser: %j',
    (text) => {
      expect(toStrictYaml(text).text).toBe(text)
    },
  )

  it('a text that is YAML 1.2 is not changed', () => {
    const text = 'a: "x\n  y"\nb: [\n  c\n  ]\nd: |\n  "z\n  [\ne: it\'s #"\n'
    expect(toStrictYaml(text).text).toBe(text)
  })

  it('a lenient text is rendered with its own bytes, and problems have their original places', () => {
    const values =
      'a: "x\r\ny {{ .spectro.var.v }}\r\nz"#c\r\nb: [\r\n{{ .spectro.var.v }}, "{{ .spectro.var.w }}" ]\r\n'
    const { content, places } = renderValues(values, variable('1, 2'))
    expect(content).toBe(values.replaceAll('{{ .spectro.var.v }}', '1, 2'))
    expect(places).toEqual(['VariableUndeclared 5:24', 'MacroBreaksYaml 5:1'])
    expect(renderValues('a: "x\ny"\nb: [1\nc: 2').places).toEqual(['YamlInvalid 4:1'])
    expect(renderValues('a: "x\ny"\nb: 1\nb: 2').places).toEqual(['YamlKeyTwice 4:1'])
  })

  it('every offset of a changed text maps back to the original', () => {
    const text = 'a: "x\ny\'"#c\nb: "\\\'"\n'
    const strict = toStrictYaml(text)
    expect(strict.text).toBe('a: "x\n y\'" #c\nb: "\\x27"\n')
    for (const character of ['x', 'y', '#', 'c', 'b', '"\n'])
      expect(strict.originalOf(strict.text.indexOf(character))).toBe(text.indexOf(character))
    expect(strict.originalOf(strict.text.length)).toBe(text.length)
    expect(strict.originalOf(strict.text.indexOf('27'))).toBeLessThanOrEqual(text.indexOf('"\n'))
  })
})

describe('a text that Helm and kubectl refuse', () => {
  // Texts that these readers refuse for reasons of their own may be valid YAML 1.2.
  const others = ['a: {{x}}']
  it.each(texts.filter(([text, { refused }]) => refused !== undefined && !others.includes(text)))(
    '%j is refused, as by Helm and kubectl',
    (text) => {
      expect(read(text).problems).not.toEqual([])
    },
  )
})

describe('a character that Helm and kubectl refuse', () => {
  // Each of these texts, and of those below, was tried with a real helm.
  it.each([
    ['a: 1\n\t\nb: 2\n', 'YamlInvalid 2:1'],
    ['a:\n\t\n  b: 1\n', 'YamlInvalid 2:1'],
    ['a:\n  b: 1\n  \t\r\n  c: 2\n', 'YamlInvalid 3:3'],
    ['a: 1\n\t# c\nb: 2\n', 'YamlInvalid 2:1'],
    ['a: b\n\n\t\n', 'YamlInvalid 3:1'],
    ['a: |\n  b\n\t\nc: d\n', 'YamlInvalid 3:1'],
    ['a: "\0"\n', 'YamlInvalid 1:5'],
    ['# \x07\na: "x\ny"\n', 'YamlInvalid 1:3'],
    ['a: \x7f\n', 'YamlInvalid 1:4'],
  ])('a refused character is named with its place: %j', (text, place) => {
    expect(renderValues(text).places).toEqual([place])
  })

  it.each([
    'a:\n  b: 1 \t\n\n  c: 2\n',
    'a: 1\n \t# c\nb: 2\n',
    'a: "b\n\tc"\n',
    'a: [1,\n\t2]\n',
    'a: |\n  b\n  \tc\n',
    'a: \u0085\ue000\ud83d\ude00\n',
  ])('%j has no refused character', (text) => {
    expect(renderValues(text).places).toEqual([])
  })

  it('the message about too deep nesting is not that of V8', () => {
    const deep = Array.from({ length: 5_000 }, (_, depth) => `${' '.repeat(depth)}a:\n`).join('')
    const messages = new Set(read(deep).problems.map(({ message }) => message))
    expect([...messages]).toEqual(['is nested too deeply'])
  })
})

describe('a key that is another one for Helm and kubectl', () => {
  it.each<[string, string[]]>([
    ['on: 1\ntrue: 2', ['YamlKeyTwice 2:1']],
    ['1: 1\n"1": 2', ['YamlKeyTwice 2:1']],
    ['010: 1\n8: 2', ['YamlKeyTwice 2:1']],
    ['"on": 1\ntrue: 2', []],
    ['1:20: 1\n80: 2', []],
  ])('keys are compared as by Helm and kubectl: %j', (values, places) => {
    expect(renderValues(values).places).toEqual(places)
  })
})

describe('the reading of lenient YAML', () => {
  it.each([
    'a',
    'a: ',
    '"',
    '"\n',
    "'\n ",
    '[\n',
    '{a: ',
    'a: |\n',
    '|\n',
    'a: "x\ny"\n',
    '- - ',
    '"\\\n',
    ' \n',
    '\t',
  ])('lenient YAML is read in linear time among %j', (piece) => {
    const text = piece.repeat(Math.ceil(1_000_000 / piece.length))
    const begin = cpuNow()
    toStrictYaml(text)
    expect(cpuNow() - begin).toBeLessThan(3_000)
  })

  it('the reading of lenient YAML never makes a text more than twice as long', () => {
    const deep = Array.from({ length: 1_000 }, (_, depth) => `${' '.repeat(depth)}a:\n`).join('')
    const text = `${deep}${' '.repeat(1_000)}"x${'\ny'.repeat(300_000)}"`
    expect(toStrictYaml(text).text.length).toBeLessThan(2 * text.length + 65_536)
  })

  it('the reading of lenient YAML never changes blocks, comments and plain text', () => {
    const random = createRandom(8)
    for (let round = 0; round < 500; round += 1) {
      const inside = random.text(
        ['"', "'", '[', '{', '#', 'x', ' ', '\n  ', ': ', "\\'"],
        1 + random.below(12),
      )
      const text = `a: |\n  .${inside}\nb: 1\n`
      expect(toStrictYaml(text).text).toBe(text)
    }
    for (const text of [
      "a: it's\nb: 'x'\n",
      'a: x "y\n  z"\nb: 1\n',
      '# "x\na: 1\n',
      'a: b[c\nd: e{f\n',
      "- a\n  'b\n- c\n",
    ])
      expect(toStrictYaml(text).text).toBe(text)
  })

  it('macros are found in scalars that continue at any indent', () => {
    const text = 'a: "x\n{{ .spectro.var.v }}"\nb: 1'
    expect(readYaml(text, findMacros(text)).sites).toMatchObject([
      { style: 'double', start: 3, end: 27, first: 0 },
    ])
  })
})
