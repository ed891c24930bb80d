import { describe, expect, it } from 'vitest'
import { checkDefinition } from '../../../../src/definition/rules/check.ts'
import { cpuNow } from '../../../support/cpu-time.ts'
import { definitionOf, packOf, profileOf, profilePack } from '../../../support/definitions.ts'
import { render } from '../../../support/rendered-values.ts'

const variables = [{ name: 'v', defaultValue: 'x' }]
/** A pack with one manifest in its folder. */
const withManifest = (content: string) =>
  definitionOf(
    [profileOf([profilePack('a')], variables)],
    [packOf('a', { manifests: [{ place: 'm.yaml', content }] })],
  )
const check = (content: string) =>
  checkDefinition(withManifest(content))
    .filter(({ code }) => code !== 'VariableUnused')
    .map(({ code, severity, place }) => `${severity} ${code} ${place}`)

describe('a manifest that is a template over its values', () => {
  it.each<[string, string]>([
    ['that begins with a condition', '{{ if not .Values.api }}\nkind: Service\n{{ end }}\n'],
    ['with a key in two branches', 'a: 1\n{{- if .Values.x }}\nb: 1\n{{- else }}\nb: 2\n{{- end }}\n'],
    ['with a value of two parts', 'name: {{ .Values.a }}/{{ .Values.b }}\n'],
    ['with an action for a whole block', 'spec:\n{{ toYaml .Values.spec | indent 2 }}\n'],
    ['with an action as key', '{{ .Values.key }}: 1\n'],
    ['with a comment of its own', '{{/* a: b: c */}}\na: 1\n'],
    ['with macros', '{{ if .Values.x }}\nname: {{ .Values.a }}-{{ .spectro.var.v }}\n{{ end }}\n'],
  ])('a manifest %s is not checked as YAML', (_name, content) => {
    expect(check(content)).toEqual([])
  })

  it.each<[string, string, string[]]>([
    [
      'an unknown variable',
      '{{ if .Values.x }}\na: {{ .spectro.var.w }}\n{{ end }}',
      ['error VariableUndeclared m.yaml:2:4'],
    ],
    ['a malformed macro', '{{ end }}\na: {{ .spectro.x }}', ['error MacroInvalid m.yaml:2:4']],
    [
      'an unknown variable in a comment, as a warning',
      '{{ if .Values.x }}\n  # a: {{ .spectro.var.w }} {{ .spectro.var.w }}\nb: 1 # {{ .spectro.var.w }}\n{{ end }}',
      [
        'warning VariableUndeclared m.yaml:2:8',
        'warning VariableUndeclared m.yaml:2:29',
        'error VariableUndeclared m.yaml:3:8',
      ],
    ],
  ])('a template is still checked for %s', (_name, content, problems) => {
    expect(check(content)).toEqual(problems)
  })

  it('in a template only the macros are rendered', () => {
    const content = '{{ if .Values.x }}\nname: {{ .Values.a }}-{{ .spectro.var.v }}\n{{ end }}\n'
    const { texts, problems } = render(withManifest(content))
    expect(texts.map((each) => each.content)).toEqual([
      '{{ if .Values.x }}\nname: {{ .Values.a }}-x\n{{ end }}\n',
    ])
    expect(problems).toEqual([])
  })

  it('a template may be a manifest of the profile', () => {
    const manifests = [{ name: 'm', content: '{{ if .Values.x }}\na: 1\n{{ end }}\n' }]
    const definition = definitionOf([profileOf([profilePack('a', 'b: 1', { manifests })])])
    expect(checkDefinition(definition)).toEqual([])
  })

  it('a template full of macros in one comment is checked in linear time', () => {
    const begin = cpuNow()
    check(`{{ end }}\n# ${'{{ .spectro.var.v }}'.repeat(100_000)}`)
    check(`{{ end }}\n${'#{{ .spectro.var.v }}\n'.repeat(100_000)}`)
    expect(cpuNow() - begin).toBeLessThan(8_000)
  })
})

describe('a text without other templates', () => {
  it('a text with macros but without other templates is checked as YAML', () => {
    expect(check('a: [{{ .spectro.var.v }}\nb: 1')).toEqual(['error YamlInvalid m.yaml:2:1'])
    expect(check('a: 1\na: {{ .spectro.var.v }}')).toEqual(['warning YamlKeyTwice m.yaml:2:1'])
  })

  it('values are never a template: they are checked as YAML', () => {
    const values = '{{ if .Values.x }}\na: 1\n{{ end }}\n'
    const [problem] = checkDefinition(definitionOf([profileOf([profilePack('a', values)])]))
    expect(problem?.code).toBe('YamlInvalid')
  })
})
