import { describe, expect, it } from 'vitest'
import type { Pack } from '../../../../src/definition/definition.ts'
import { checkDefinition } from '../../../../src/definition/rules/check.ts'
import { renderDefinition } from '../../../../src/definition/rules/macros.ts'
import { definitionOf, packOf, profileOf, profilePack } from '../../../support/definitions.ts'

/** A pack `web` that its profile contains three times, and a pack that refers to it. */
const repeated = (values: readonly string[], reference = '', folder: Partial<Pack> = {}) =>
  definitionOf(
    [
      profileOf(
        [
          ...values.map((each, index) =>
            profilePack('web', each, { displayName: index === 0 ? '' : `web-${index}` }),
          ),
          profilePack('app', `a: ${reference}\n`),
        ],
        [
          { name: 'x', format: 'number', defaultValue: '7' },
          { name: 'y', format: 'number', defaultValue: '7' },
        ],
      ),
    ],
    [packOf('web', folder), packOf('app')],
  )
const problems = (...given: Parameters<typeof repeated>) =>
  checkDefinition(repeated(...given)).flatMap(({ code, severity }) =>
    code === 'VariableUnused' ? [] : [`${code} ${severity}`],
  )
const texts = (...given: Parameters<typeof repeated>) =>
  renderDefinition(repeated(...given), { given: [], facts: {} }).texts.map(
    ({ place, packName, displayName, content }) =>
      `${packName}/${displayName} ${place.replace(/^.*#spec\.template\./, '')} ${content.trim()}`,
  )

const reference = '{{ .spectro.pack.web.port }}'

describe('a pack that stands in its profile more than once', () => {
  it('a repeated pack has its own values under each display name', () => {
    expect(texts(['port: {{ .spectro.var.x }}\n', 'port: 2\n'])).toEqual([
      'web/ packs[0].values port: 7',
      'web/web-1 packs[1].values port: 2',
      'app/ packs[2].values a:',
    ])
  })

  it('a repeated pack has the values of its folder under each display name without values', () => {
    expect(texts(['', 'port: 2\n', ''], '', { values: 'port: 80\n' })).toEqual([
      'web/ packs/web-1.0.0/values.yaml port: 80',
      'web/web-2 packs/web-1.0.0/values.yaml port: 80',
      'web/web-1 packs[1].values port: 2',
      'app/ packs[3].values a:',
    ])
    expect(texts(['port: 2\n', ''], '', { values: 'port: 80\n' })).toContain(
      'web/web-1 packs/web-1.0.0/values.yaml port: 80',
    )
  })

  it('a repeated pack has the manifests of its folder under each display name', () => {
    const manifests = [{ place: 'packs/web-1.0.0/manifests/a.yaml', content: 'kind: {{ .spectro.var.x }}\n' }]
    expect(texts(['port: 1\n', 'port: 2\n'], '', { manifests })).toEqual(
      expect.arrayContaining([
        'web/ packs/web-1.0.0/manifests/a.yaml kind: 7',
        'web/web-1 packs/web-1.0.0/manifests/a.yaml kind: 7',
      ]),
    )
  })

  it.each<[string, string[], string[]]>([
    ['the same', ['port: 80\n', 'port: "80"\n'], []],
    ['the same macro', ['port: {{ .spectro.var.x }}\n', 'b: 1\nport: {{ .spectro.var.x }}\n'], []],
    ['another value', ['port: 80\n', 'port: 81\n'], ['MacroPackAmbiguous error']],
    [
      'another macro',
      ['port: {{ .spectro.var.x }}\n', 'port: {{ .spectro.var.y }}\n'],
      ['MacroPackAmbiguous error'],
    ],
    ['missing once', ['port: 80\n', 'b: 81\n'], ['MacroPackAmbiguous error']],
    ['without any values once', ['port: 80\n', ''], ['MacroPackAmbiguous error']],
  ])(
    'a macro may refer to a repeated pack only if the value is the same everywhere: %s',
    (_case, values, expected) => {
      expect(problems(values, reference)).toEqual(expected)
    },
  )

  it('a macro may refer to a repeated pack if all have the values of the folder', () => {
    expect(problems(['', ''], reference, { values: 'port: 80\n' })).toEqual([])
    expect(texts(['', ''], reference, { values: 'port: 80\n' })).toContain('app/ packs[2].values a: 80')
  })
})
