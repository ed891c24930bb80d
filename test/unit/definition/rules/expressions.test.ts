import { describe, expect, it } from 'vitest'
import { checkDefinition } from '../../../../src/definition/rules/check.ts'
import { cpuNow } from '../../../support/cpu-time.ts'
import { appDefinition, placesOf, renderValues } from '../../../support/rendered-values.ts'

const facts = { clusterName: 'Shop 7', clusterUid: 'u9', kubernetesVersion: '1.33.3' }
const version = '.spectro.system.kubernetes.version'

describe('a macro with functions', () => {
  it.each<[string, string, string]>([
    ['one function', `a: v{{ ${version} | substr 0 4 }}`, 'a: v1.33'],
    ['a pipe without blanks', `a: v{{${version}|trunc 4}}`, 'a: v1.33'],
    ['several functions', 'a: {{ .spectro.system.cluster.name | lower | replace " " "-" }}', 'a: shop-7'],
    ['parentheses', `a: x{{ (semver ${version}).Minor }}`, 'a: x33'],
    ['the function first', 'a: {{ upper .spectro.system.cluster.uid }}', 'a: U9'],
    ['two macros', 'a: {{ printf "%s-%s" .spectro.system.cluster.uid "x" | upper }}', 'a: U9-X'],
    ['text in back quotes', 'a: {{ .spectro.system.cluster.uid | replace `u` "v" }}', 'a: v9'],
    [
      'quotes as YAML escapes them',
      'a: "{{ .spectro.system.cluster.uid | replace \\"u\\" \\"v\\" }}"',
      'a: "v9"',
    ],
    ['quotes as they are, in quotes', 'a: "{{ .spectro.system.cluster.uid | replace "u" "v" }}"', 'a: "v9"'],
    ['its own quotes', 'a: {{ .spectro.system.cluster.name | quote }}', 'a: "Shop 7"'],
    [
      'a result with a line break',
      'a: {{ .spectro.system.cluster.uid | nindent 2 }}\nb: 1',
      'a: \n  u9\nb: 1',
    ],
    ['a line break in the braces', `a: "x=v{{\n    ${version} | substr 0 4 }}"`, 'a: "x=v1.33"'],
    ['a default that is not needed', `a: v{{ ${version} | default "1.0" }}`, 'a: v1.33.3'],
    ['a default for a value that only the platform knows', 'a: {{ .spectro.macro.x | default "b" }}', 'a: b'],
    [
      'a default for a fact of the platform',
      'a: {{ .spectro.system.user.name | default "b" | upper }}',
      'a: B',
    ],
    ['a default for a missing pack', 'a: {{ .spectro.pack.other.x | default "b" }}', 'a: b'],
    ['a value of a pack', 'a: "{{ .spectro.pack.app.b | upper }}"\nb: x', 'a: "X"\nb: x'],
    [
      'a value of a pack that has functions itself',
      `a: "{{ .spectro.pack.app.b | upper }}"\nb: "{{ .spectro.system.cluster.uid | repeat 2 }}"`,
      'a: "U9U9"\nb: "u9u9"',
    ],
    ['a choice', `a: {{ semverCompare ">=1.30" ${version} | ternary "new" "old" }}`, 'a: new'],
  ])('a macro may have %s', (_name, values, expected) => {
    const { content, problems } = renderValues(values, { facts })
    expect(problems).toEqual([])
    expect(content).toBe(expected)
  })

  // Results of Go's text/template for the same text.
  it.each<[string, string]>([
    ['a: x {{- .spectro.system.cluster.uid }} y', 'a: xu9 y'],
    ['a: x {{ .spectro.system.cluster.uid -}} y', 'a: x u9y'],
    ['a: "x \r\n\t {{- .spectro.system.cluster.uid -}} \n y"', 'a: "xu9y"'],
    ['a: x{{- .spectro.system.cluster.uid -}}  {{- .spectro.system.cluster.uid -}} y', 'a: xu9u9y'],
    ['a: "\u00a0{{- .spectro.system.cluster.uid -}}\u00a0"', 'a: "\u00a0u9\u00a0"'],
    ['a: b\n{{- .spectro.system.cluster.uid }}\nc: 1', 'a: bu9\nc: 1'],
  ])('trim markers remove the blanks beside them: %j', (values, expected) => {
    expect(renderValues(values, { facts })).toMatchObject({ content: expected, problems: [] })
  })

  it.each<[string, string, string[], string]>([
    [
      'an unknown function',
      'a: {{ .spectro.system.cluster.uid | uper }}',
      ['MacroFunctionUnknown 1:4'],
      'uper; did you mean upper?',
    ],
    [
      'a function with a random result',
      'a: {{ .spectro.system.cluster.uid | randAlpha 3 }}',
      ['MacroFunctionUnknown 1:4'],
      'randAlpha',
    ],
    [
      'functions of a variable',
      'a: {{ upper .spectro.var.v }}',
      ['MacroInvalid 1:4'],
      'applies functions to a variable of the profile',
    ],
    [
      'too few arguments',
      `a: {{ ${version} | substr 0 }}`,
      ['MacroInvalid 1:4'],
      'gives the function substr 2 values; it takes 3',
    ],
    ['no function after |', `a: {{ ${version} | "x" }}`, ['MacroInvalid 1:4'], 'has no function after |'],
    [
      'an open parenthesis',
      `a: {{ (${version} }}`,
      ['MacroUnevaluated 1:4'],
      'parenthesis that is not closed',
    ],
    [
      'a value of the wrong kind',
      `a: {{ ${version} | repeat "2" }}`,
      ['MacroFunctionFailed 1:4'],
      'function repeat takes an integer, not text',
    ],
    [
      'too long a result',
      `a: {{ ${version} | repeat 1000000000 }}`,
      ['MacroFunctionFailed 1:4'],
      'function repeat would return more than 65536 characters',
    ],
    [
      'too deep an indent',
      `a: {{ ${version} | indent 1000000000 }}`,
      ['MacroFunctionFailed 1:4'],
      'function indent would return more',
    ],
    [
      'too many parts',
      `a: {{ ${version} | replace "" "${'x'.repeat(600)}" | replace "" "${'y'.repeat(600)}" }}`,
      ['MacroFunctionFailed 1:4'],
      'function replace would return more',
    ],
    [
      'a text that is not a version',
      'a: {{ semver .spectro.system.cluster.uid }}',
      ['MacroFunctionFailed 1:4'],
      'function semver takes a version',
    ],
    [
      'an unknown fact',
      'a: {{ .spectro.system.cluster.uuid | default "x" }}',
      ['MacroSystemUnknown 1:4'],
      'did you mean cluster.uid?',
    ],
    [
      'a value that only the platform knows, without a default',
      'a: {{ .spectro.system.user.name | upper }}',
      ['MacroPlatformOnly 1:4'],
      'user.name',
    ],
    [
      'a value that contains itself',
      'a: "{{ .spectro.pack.app.a | upper }}"',
      ['MacroCycle 1:5'],
      'app.a -> app.a',
    ],
    [
      'a condition',
      'a: "{{ if .spectro.system.cluster.uid }}x"',
      ['MacroUnevaluated 1:5'],
      'is a statement of a template',
    ],
    [
      'an unset fact',
      'a: {{ .spectro.system.cluster.kubevip | default "x" }}',
      ['MacroUnset 1:4'],
      'cluster.kubevip is not known',
    ],
    [
      'quotes in quotes',
      'a: "{{ .spectro.system.cluster.uid | quote }}"',
      ['MacroBreaksYaml 1:5'],
      'inside double quotes',
    ],
    [
      'text that becomes a number',
      `a: {{ ${version} | trunc 4 }}`,
      ['MacroTypeChanged 1:4'],
      'becomes a number',
    ],
  ])('a macro is reported if it has %s', (_name, values, places, message) => {
    const result = renderValues(values, { facts })
    expect(result.places).toEqual(places)
    expect(result.problems[0]?.message).toContain(message)
  })

  it('a macro with a default has no value before the facts are known', () => {
    const values = `a: {{ ${version} | substr 0 4 }}\nb: {{ ${version} | default "1.0" | semver }}`
    expect(checkDefinition(appDefinition(values))).toEqual([])
  })

  it('a malformed macro still counts as a use of its variable', () => {
    const problems = checkDefinition(appDefinition('a: {{ .spectro.var.v | upper }}', [{ name: 'v' }]))
    expect(placesOf(problems)).toEqual(['MacroInvalid 1:4'])
  })

  it('a macro in a condition of a manifest is not rendered, and the manifest is a template', () => {
    const content = '{{ if eq .spectro.system.cloud.type "x" }}\na: 1\na: 2\n{{ end }}\n'
    const definition = appDefinition('b: 1')
    const [profile] = definition.profiles
    const packs = profile!.packs.map((pack) => ({ ...pack, manifests: [{ name: 'm', content }] }))
    const problems = checkDefinition({ ...definition, profiles: [{ ...profile!, packs }] })
    expect(problems.map(({ code, severity }) => `${severity} ${code}`)).toEqual(['warning MacroUnevaluated'])
  })
})

describe('functions that make as much as they may', () => {
  it.each<[string, string]>([
    ['many long results', 'a: "{{ .spectro.system.cluster.uid | repeat 30000 | len }}"\n'],
    ['long chains', `a: "{{ .spectro.system.cluster.uid | repeat 30000${' | upper'.repeat(200)} | len }}"\n`],
    [
      'deep parentheses',
      `a: "{{ upper ${'('.repeat(900)}.spectro.system.cluster.uid${')'.repeat(900)} }}"\n`,
    ],
    [
      'doubling',
      `a: "{{ ${Array.from({ length: 30 }, () => '.spectro.system.cluster.uid | repeat 2').join(' | cat ')} }}"\n`,
    ],
    [
      'broad lists',
      `a: "{{ splitList "" (repeat 30000 .spectro.system.cluster.uid) | join "," | splitList "," | len }}"\n`,
    ],
  ])('functions end in bounded time and memory: %s', (_name, line) => {
    const begin = cpuNow()
    renderValues(line.repeat(500), { facts })
    expect(cpuNow() - begin).toBeLessThan(2_500)
  })
})
