import { expect, it } from 'vitest'
import type { Variable } from '../../../../src/definition/definition.ts'
import { derivedSecrets } from '../../../../src/definition/rules/macros.ts'
import { parseVariables } from '../../../../src/definition/rules/variables.ts'
import { appDefinition } from '../../../support/rendered-values.ts'

const variables: readonly Variable[] = [
  { name: 'secret', isSensitive: true, defaultValue: 'default-x9' },
  { name: 'plain', defaultValue: 'open-value' },
]

/** What the macro makes of `s`, a secret, and `p`, which is none. */
function derivedBy(macro: string, value = 'hostleakqzz9') {
  const values = `s: '{{ .spectro.var.secret }}'\np: '{{ .spectro.var.plain }}'\nblock: |\n  kind: Box\n  key: {{ .spectro.var.secret }}\nfound: '${macro}'\n`
  const definition = appDefinition(values, variables)
  const given = value === '' ? [] : [{ name: 'secret', value }]
  return derivedSecrets(definition, { given, facts: {}, variables: parseVariables(definition.profiles) })
}

it.each([
  ['upper', '{{ .spectro.pack.app.s | upper }}', ['HOSTLEAKQZZ9']],
  ['replace', '{{ .spectro.pack.app.s | replace "leak" "-" }}', ['host-qzz9']],
  ['a part', '{{ .spectro.pack.app.s | substr 2 8 }}', ['stleak']],
  ['base32', '{{ .spectro.pack.app.s | b32enc }}', ['NBXXG5DMMVQWW4L2PI4Q====']],
  ['what is plain', '{{ .spectro.pack.app.p | upper }}', []],
  ['the value itself, which is masked anyway', '{{ .spectro.pack.app.s }}', []],
  ['only the line of a block that has it', '{{ .spectro.pack.app.block | upper }}', ['KEY: HOSTLEAKQZZ9']],
])('what macros make of a secret is known: %s', (_, macro, derived) => {
  expect(derivedBy(macro)).toEqual(derived)
})

it('also of its default, and not of words that any text has', () => {
  expect(derivedBy('{{ .spectro.pack.app.s | upper }}', '')).toEqual(['DEFAULT-X9'])
  expect(derivedBy('{{ .spectro.pack.app.s | eq "hostleakqzz9" }}')).toEqual([])
})
