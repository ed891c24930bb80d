import { describe, expect, it } from 'vitest'
import { checkDefinition } from '../../../../src/definition/rules/check.ts'
import {
  appDefinition,
  placesOf,
  renderValues,
  variable,
  type Given,
} from '../../../support/rendered-values.ts'

describe('a value in the place of its macro', () => {
  const number = (text: string): Given => variable(text, { format: 'number' })
  it.each<[string, string, Given, string[]]>([
    ['a number without quotes', 'a: {{.spectro.var.v}}', number('80'), []],
    ['a number in double quotes', 'a: "{{.spectro.var.v}}"', number('80'), ['MacroTypeChanged 1:5']],
    ['a number in single quotes, as documented', "a: '{{.spectro.var.v}}'", number('80'), []],
    [
      'a boolean in quotes',
      'a: "{{.spectro.var.v}}"',
      variable('true', { format: 'boolean' }),
      ['MacroTypeChanged 1:5'],
    ],
    ['a number in quotes with other text', 'a: "port-{{.spectro.var.v}}"', number('80'), []],
    ['a number in a quoted key', '"{{.spectro.var.v}}": 1', number('80'), []],
    ['a text in quotes', 'a: "{{.spectro.var.v}}"', variable('80'), []],
    ['a text that becomes a number', 'a: {{.spectro.var.v}}', variable('1.16'), ['MacroTypeChanged 1:4']],
    [
      'a text that becomes a boolean for YAML 1.1',
      'a: {{.spectro.var.v}}',
      variable('yes'),
      ['MacroTypeChanged 1:4'],
    ],
    ['a text that becomes null', 'a: {{.spectro.var.v}}', variable('~'), ['MacroTypeChanged 1:4']],
    ['an empty text that becomes null', 'a: {{.spectro.var.v}}', variable(''), ['MacroTypeChanged 1:4']],
    [
      'a text that becomes an octal number in Helm and kubectl',
      'a: {{.spectro.var.v}}',
      variable('0o17'),
      ['MacroTypeChanged 1:4'],
    ],
    ['a time, which is text in Helm and kubectl', 'a: {{.spectro.var.v}}', variable('12:30:00'), []],
    [
      'a boolean of another pack in quotes, as Helm and kubectl read it',
      'a: on\nb: "{{.spectro.pack.app.a}}"',
      {},
      ['MacroTypeChanged 2:5'],
    ],
    ['a tagged text of another pack in quotes', 'a: !!str 8080\nb: "{{.spectro.pack.app.a}}"', {}, []],
    [
      'two that become one number',
      'a: {{.spectro.var.v}}.{{.spectro.var.v}}',
      number('1'),
      ['MacroTypeChanged 1:4'],
    ],
    ['a number in the key', '{{.spectro.var.v}}: x', number('1'), []],
    ['a text that stays text', 'a: v{{.spectro.var.v}}', variable('1.16'), []],
    ['a version', 'a: {{.spectro.var.v}}', variable('1.2.3', { format: 'version' }), []],
    ['a colon and space without quotes', 'a: {{.spectro.var.v}}', variable('b: c'), ['MacroBreaksYaml 1:4']],
    ['a colon at the end without quotes', 'a: {{.spectro.var.v}}', variable('b:'), ['MacroBreaksYaml 1:4']],
    ['a colon inside a word', 'a: {{.spectro.var.v}}', variable('http://b:80'), []],
    ['a colon and space in quotes', 'a: "{{.spectro.var.v}}"', variable('b: c'), []],
    ['a comment without quotes', 'a: {{.spectro.var.v}}', variable('b #c'), ['MacroBreaksYaml 1:4']],
    ['an indicator at the beginning', 'a: {{.spectro.var.v}}', variable('*b'), ['MacroBreaksYaml 1:4']],
    ['an indicator in the middle', 'a: b{{.spectro.var.v}}', variable('*b'), []],
    ['an item of a list', 'a: {{.spectro.var.v}}', variable('- b'), ['MacroBreaksYaml 1:4']],
    ['a comma in brackets', 'a: [{{.spectro.var.v}}]', variable('b, c'), ['MacroBreaksYaml 1:5']],
    ['a comma without brackets', 'a: {{.spectro.var.v}}', variable('b, c'), []],
    [
      'a line break without quotes',
      'a: {{.spectro.var.v}}',
      variable('b\nc', { inputType: 'multiline' }),
      ['MacroBreaksYaml 1:4'],
    ],
    [
      'a line break in double quotes',
      'a: "{{.spectro.var.v}}"',
      variable('b\nc', { inputType: 'multiline' }),
      ['MacroBreaksYaml 1:5'],
    ],
    [
      'a line break in a block',
      'a: |\n  {{.spectro.var.v}}\n',
      variable('b\nc', { inputType: 'multiline' }),
      ['MacroBreaksYaml 2:3'],
    ],
    [
      'a line break in a comment',
      'a: 1 # {{.spectro.var.v}}\n',
      variable('b\nc', { inputType: 'multiline' }),
      ['MacroBreaksYaml 1:8'],
    ],
    ['a double quote in double quotes', 'a: "{{.spectro.var.v}}"', variable('b"'), ['MacroBreaksYaml 1:5']],
    ['a backslash in double quotes', 'a: "{{.spectro.var.v}}"', variable('b\\n'), ['MacroBreaksYaml 1:5']],
    ['a single quote in double quotes', 'a: "{{.spectro.var.v}}"', variable("b'"), []],
    ['a single quote in single quotes', "a: '{{.spectro.var.v}}'", variable("b'c"), ['MacroBreaksYaml 1:5']],
    ['a backslash in single quotes', "a: '{{.spectro.var.v}}'", variable('b\\n'), []],
    ['quotes in a block', 'a: |\n  {{.spectro.var.v}}', variable('"b: \'#c'), []],
    ['a control character', 'a: "{{.spectro.var.v}}"', variable('b\u0007'), ['MacroBreaksYaml 1:5']],
    [
      'a number of another pack in quotes',
      'a: 8080\nb: "{{.spectro.pack.app.a}}"',
      {},
      ['MacroTypeChanged 2:5'],
    ],
    [
      'a version of another pack in quotes, quoted there too',
      'a: "1.16"\nb: "{{.spectro.pack.app.a}}"',
      {},
      [],
    ],
    [
      'a version of another pack that loses its quotes',
      'a: "1.16"\nb: {{.spectro.pack.app.a}}',
      {},
      ['MacroTypeChanged 2:4'],
    ],
  ])('the placement of a value is checked: %s', (_name, values, given, problems) => {
    expect(renderValues(values, given).places).toEqual(problems)
  })

  it('no message contains a value', () => {
    const given = variable('topsecret: "\n', { isSensitive: true, inputType: 'multiline' })
    const { problems } = renderValues(
      'a: {{.spectro.var.v}}\nb: "{{.spectro.var.v}}"\nc: {{.spectro.pack.app.b}}',
      given,
    )
    expect(problems.length).toBeGreaterThan(1)
    expect(JSON.stringify(problems)).not.toContain('topsecret')
  })

  it('the placement is checked by the format before a value is given', () => {
    const variables = [{ name: 'v', format: 'number', required: true }]
    const definition = appDefinition('a: "{{.spectro.var.v}}"', variables)
    expect(placesOf(checkDefinition(definition))).toEqual(['MacroTypeChanged 1:5'])
  })
})
